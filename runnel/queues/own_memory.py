"""Memory from outside that one array alone uses, and how to recognise such an array."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class OwnMemory(np.ndarray):
    """Bytes that were received, of which each part is for one array; as are its slices.

    ``release`` is called when it, and the array in it, are gone. An array whose ``base`` is one of
    these shares its memory with nothing else, as one without a base does.
    """

    release: Callable[[], None] | None = None

    def __del__(self) -> None:
        if self.release is not None:
            self.release()

    def as_array(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """The array that is here; nothing else is."""
        return np.ndarray(shape, dtype, self)  # type: ignore[arg-type]


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
