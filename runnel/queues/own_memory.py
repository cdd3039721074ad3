"""Memory that came from outside and that one array alone uses."""

from __future__ import annotations

import sys
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
    """True when ``array`` shares its memory with no other array.

    It may be a view of all of an array that nobody else has, such as one in another shape.
    """
    base: Any = array.base
    if base is None or type(base) is OwnMemory:
        return True
    whole = type(base) is np.ndarray and base.flags.owndata and base.nbytes == array.nbytes
    del base
    return whole and _references(array) == _OF_ONE_VIEW


def _references(array: np.ndarray) -> int:
    """How many references there are to the base of ``array``, those of this function included."""
    return sys.getrefcount(array.base)


_OF_ONE_VIEW = _references(np.empty(1)[:])
