"""Memory that came from outside and that one array alone uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class OwnMemory:
    """What owns the memory of an array that was received; ``release`` is called when it is gone.

    An array whose ``base`` is one of these shares its memory with nothing else, as one without a
    base does.
    """

    __slots__ = ("__array_interface__", "_memory", "_release")

    def __init__(
        self,
        memory: np.ndarray,
        shape: Sequence[int],
        dtype: np.dtype,
        release: Callable[[], None] | None = None,
    ) -> None:
        """``memory`` are the array's bytes."""
        self._memory = memory
        self._release = release
        self.__array_interface__ = {
            "data": (memory.ctypes.data, False),
            "shape": tuple(shape),
            "typestr": dtype.str,
            "version": 3,
        }

    def __del__(self) -> None:
        if self._release is not None:
            self._release()


def own_array(
    memory: np.ndarray,
    shape: Sequence[int],
    dtype: np.dtype,
    release: Callable[[], None] | None = None,
) -> np.ndarray:
    """The array in ``memory``, bytes that nothing else uses until ``release`` is called."""
    if dtype.str[1] == "V":  # a type that NumPy has no name for: it looks at the memory as bytes
        return (
            np.asarray(OwnMemory(memory, memory.shape, memory.dtype, release))
            .view(dtype)
            .reshape(shape)
        )
    return np.asarray(OwnMemory(memory, shape, dtype, release))


def is_alone(array: np.ndarray) -> bool:
    """True when ``array`` shares its memory with no other array."""
    base: Any = array.base
    return base is None or type(base) is OwnMemory
