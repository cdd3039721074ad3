"""Packs: the values of many small variables in one array, for steps that update all of them.

Such a step computes with the whole array and stores the whole array. Nothing changes for everyone
else: a packed cell holds a :class:`Row`, and its value is that row of the pack's present array.
Storing another value into a cell takes it out of its pack. The next step that wants the pack
collects the values anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from runnel.runtime.state.cell import Cell

_held_by = attrgetter("held")


class Row:
    """What a packed cell holds: the place of its value in the array of a pack.

    Only ``value`` needs the lock of the state. The rest tells of the value what an array would, and
    does not touch the memory of the pack, which a step may be taking over.
    """

    __slots__ = ("pack", "index")

    def __init__(self, pack: Pack, index: int) -> None:
        self.pack = pack
        self.index = index

    @property
    def value(self) -> Any:
        """The present value: an array that does not change when the pack gets a new one."""
        return self.pack.part(self.index)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.pack.shape_of(self.index)

    @property
    def dtype(self) -> Any:
        """The type of the value's elements."""
        return self.pack.array.dtype

    @property
    def nbytes(self) -> int:
        """The size of the value."""
        return prod(self.shape) * int(self.dtype.itemsize)

    def is_ready(self) -> bool:
        """True when no device is still computing the value."""
        array = self.pack.array
        return not hasattr(array, "is_ready") or array.is_ready()

    def block_until_ready(self) -> None:
        """Waits for a device that is still computing the value."""
        array = self.pack.array
        if hasattr(array, "block_until_ready"):
            array.block_until_ready()


class _Gone(NamedTuple):
    """Stands for an array that was let go, for those who still hold a row of it."""

    shape: tuple[int, ...]
    dtype: Any


class Pack:
    """Cells in an order, and the array of their values. Used under the lock of the state."""

    __slots__ = ("array", "_cells", "_rows", "__weakref__")

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.array: Any = None
        self._cells = tuple(cells)
        self._rows = [Row(self, index) for index in range(len(cells))]

    @property
    def held(self) -> Any:
        """What :meth:`load` gives; and to be set, as the value of a cell is."""
        return self.load()

    @held.setter
    def held(self, array: Any) -> None:
        for target, name, value in self.stores(array):
            setattr(target, name, value)

    @property
    def value(self) -> Any:
        """The same as :attr:`held`."""
        return self.load()

    def _is_whole(self) -> bool:
        """True when every cell holds its row."""
        return all(map(is_, map(_held_by, self._cells), self._rows))

    def load(self) -> Any:
        """The values of the cells, one a row; None where one is missing or has another shape.

        An array of JAX if a compiled step has stored the last one.
        """
        if self._is_whole():
            return self.array
        values = [cell.value for cell in self._cells]
        return None if any(value is None for value in values) else self._collected(values)

    def part(self, index: int) -> Any:
        """The value of one cell, which holds its place."""
        return np.asarray(self.array)[index, ...]

    def shape_of(self, index: int) -> tuple[int, ...]:
        """The shape of :meth:`part`."""
        return tuple(self.array.shape[1:])

    def _collected(self, values: list[Any]) -> Any:
        """The array of ``values``; None where they do not fit into one."""
        if any(value.shape != values[0].shape for value in values):
            return None
        return np.array([np.asarray(value) for value in values])

    def stores(self, array: Any) -> list[tuple[Any, str, Any]]:
        """Attributes to set, as a whole, for the cells to have the rows of ``array`` as values."""
        changes: list[tuple[Any, str, Any]] = [(self, "array", array)]
        if not self._is_whole():
            changes += ((c, "held", row) for c, row in zip(self._cells, self._rows, strict=True))
            for pack in self._left_empty():
                changes += pack.empties()
        return changes

    def _left_empty(self) -> Iterator[Pack]:
        """The other packs of the cells in which no cell remains when these have left them."""
        rows = [cell.held for cell in self._cells if type(cell.held) is Row]
        leaving = set(self._cells)
        for pack in {row.pack for row in rows} - {self}:
            places = zip(pack._cells, pack._rows, strict=True)
            if all(cell in leaving or cell.held is not row for cell, row in places):
                yield pack

    def empties(self) -> list[tuple[Any, str, Any]]:
        """Attributes to set for a pack without cells to let its memory go."""
        return [(self, "array", _Gone(self.array.shape, self.array.dtype))]
