"""Flat packs: the values of variables of any shapes behind one another in one array of a device.

A cell that is packed so holds its place, as in a pack of rows. Whoever wants its value has the
array taken apart once, on its device; whoever wants the array gets it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel.runtime.state.in_thread import uninterrupted
from runnel.runtime.state.pack import Pack
from runnel.wide_types import with_wide_types

if TYPE_CHECKING:
    from runnel.runtime.state.cell import Cell

Shapes = tuple[tuple[int, ...], ...]


def end_to_end(values: Sequence[Any]) -> Any:
    """The elements of ``values`` behind one another."""
    import jax.numpy as jnp

    return jnp.concatenate([jnp.ravel(value) for value in values])


def parts_of(array: Any, shapes: Shapes) -> list[Any]:
    """The arrays of ``shapes`` that lie behind one another in ``array``."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes]).tolist()
    return [
        array[begin:end].reshape(shape)
        for begin, end, shape in zip([0, *ends], ends, shapes, strict=False)
    ]


class FlatPack(Pack):
    """Cells in an order, each with a value of its shape, and the array of all elements."""

    __slots__ = ("_shapes", "_apart", "_parts")

    def __init__(self, cells: Sequence[Cell], shapes: Shapes) -> None:
        super().__init__(cells)
        self._shapes = shapes
        self._apart: Callable[[Any], list[Any]] | None = None
        self._parts: tuple[Any, list[Any]] = None, []
        """The array that was taken apart last, and what it was taken apart into."""

    def part(self, index: int) -> Any:
        """The value of one cell."""
        if self._parts[0] is not self.array:
            self._parts = self.array, self._taken_apart()
        return self._parts[1][index]

    def load(self) -> Any:
        """The values behind one another; None where one is missing or has another shape.

        A step that failed may have taken the array along, of which there still are the parts.
        """
        array = super().load()
        if array is None or not array.is_deleted():
            return array
        return self._collected([cell.value for cell in self._cells])

    def shape_of(self, index: int) -> tuple[int, ...]:
        """The shape of the value of one cell."""
        return self._shapes[index]

    def _taken_apart(self) -> list[Any]:
        import jax

        if self._apart is not None:
            return with_wide_types(self._apart, self.array)
        apart = jax.jit(lambda array: parts_of(array, self._shapes))
        parts = uninterrupted(apart, self.array)  # which traces it
        self._apart = apart
        return parts

    def _collected(self, values: list[Any]) -> Any:
        import jax

        if tuple([np.shape(value) for value in values]) != self._shapes:
            return None
        return uninterrupted(jax.jit(end_to_end), values)

    def stores(self, array: Any) -> list[tuple[Any, str, Any]]:
        """As of any pack; what the last array was taken apart into is let go."""
        return [(self, "_parts", (None, [])), *super().stores(array)]

    def empties(self) -> list[tuple[Any, str, Any]]:
        """As of any pack, and the parts."""
        return [(self, "_parts", (None, [])), *super().empties()]
