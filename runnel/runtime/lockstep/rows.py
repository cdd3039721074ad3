"""Values of several runs of a step side by side: one for each run, a *row*.

A value that is the same in every run stays as it is, without a class around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np


class RowsTooLarge(Exception):
    """Rows are better made one after the other: each is in the processor's cache then."""


class StackedRows:
    """Rows of one type and shape, in one array whose first dimension counts them."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class SeparateRows:
    """Rows that may differ in shape."""

    __slots__ = ("values", "_stack")

    def __init__(self, values: list[Any]) -> None:
        self.values = values
        self._stack: np.ndarray | bool | None = None

    def stack(self) -> np.ndarray | None:
        """The rows in one array, if they fit into one."""
        if self._stack is None:
            found = stack_of(self.values)
            self._stack = False if found is None else found
        return None if isinstance(self._stack, bool) else self._stack


def is_rows(value: Any) -> bool:
    """Whether ``value`` has a row for each run, rather than being the same in all."""
    kind = type(value)
    return kind is StackedRows or kind is SeparateRows


def row_bytes(value: Any) -> int:
    """The size of a row, by that of the first."""
    if type(value) is StackedRows:
        return value.array.nbytes // len(value.array)
    return getattr(value.values[0], "nbytes", 0)


def stack_of(values: Sequence[Any]) -> np.ndarray | None:
    """``values`` in one array; None where they differ in type or shape, or are no arrays."""
    first = values[0]
    shape, dtype = getattr(first, "shape", None), getattr(first, "dtype", None)
    if shape is None or dtype is None:
        return _texts(values)
    for value in values:
        if getattr(value, "shape", None) != shape or value.dtype != dtype:
            return None
    if dtype == object:
        out = np.empty((len(values), *shape), object)
        for i, value in enumerate(values):
            out[i] = value if shape else value[()]
        return out
    if not shape:
        return np.array(values, dtype)
    return np.array(values)


def _texts(values: Sequence[Any]) -> np.ndarray | None:
    """Strings that stand alone, in one array."""
    if not all(isinstance(value, bytes) for value in values):
        return None
    out = np.empty(len(values), object)
    out[:] = values
    return out


def stacked(value: Any) -> np.ndarray | None:
    """The rows of ``value`` in one array, if they fit into one."""
    return value.array if type(value) is StackedRows else value.stack()


def each(value: Any) -> Any:
    """An iterable over the rows; without end for what is the same in every run."""
    if type(value) is SeparateRows:
        return value.values
    if type(value) is StackedRows:
        return unstacked(value.array)
    return repeat(value)


def unstacked(array: np.ndarray) -> list[Any]:
    """The rows of an array, each a tensor's value."""
    if array.dtype == object and array.ndim == 1:
        # Not a bare string: kernels take arrays.
        return [array[i, ...] for i in range(len(array))]
    return list(array)


def some(value: Any, places: np.ndarray) -> Any:
    """The rows at ``places``."""
    if type(value) is StackedRows:
        return StackedRows(value.array[places])
    if type(value) is SeparateRows:
        return SeparateRows([value.values[place] for place in places.tolist()])
    return value


def joined(parts: Sequence[tuple[np.ndarray, Any]], count: int) -> Any:
    """``count`` rows, of which each part has those at some places."""
    arrays = [(places, _as_stack(value, len(places))) for places, value in parts]
    found = {None if array is None else (array.shape[1:], array.dtype) for _, array in arrays}
    if len(found) == 1 and None not in found:
        ((shape, dtype),) = found  # type: ignore[misc]
        out = np.empty((count, *shape), dtype)
        for places, array in arrays:
            out[places] = array
        return StackedRows(out)
    rows: list[Any] = [None] * count
    for places, value in parts:
        for place, row in zip(places.tolist(), each(value), strict=False):
            rows[place] = row
    return SeparateRows(rows)


def _as_stack(value: Any, count: int) -> np.ndarray | None:
    if is_rows(value):
        return stacked(value)
    return repeated(value, count)


def repeated(value: Any, count: int) -> np.ndarray | None:
    """``count`` rows of the same value; a view that must not be written."""
    if not isinstance(value, np.ndarray | np.generic):
        return None
    return np.broadcast_to(value, (count, *value.shape))
