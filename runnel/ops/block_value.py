"""Values that are made some rows at a time, into the mapped array of a variable.

A table that is larger than memory is never there as one array: not as random numbers that it begins
with, not as what a checkpoint has. The operations that make such a value have a second kernel
(``OpDef.block_kernel``), which gives one of these; what is between them and the variable is
arithmetic on elements (:data:`ELEMENTWISE`), done block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.mapped_array import row_blocks, set_rows

Look = Callable[[], None]
ELEMENTWISE = frozenset(
    {
        *("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Neg", "Abs", "Sqrt"),
        *("Square", "Exp", "Cast", "Identity"),
    }
)
"""Operations that can be applied to some rows of their arguments."""


class BlockValue:
    """A value of some shape and type that is yet to be made."""

    def __init__(self, shape: Sequence[int], dtype: Any) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.node: Any = None
        """The node of a step that makes it, for errors."""

    def write(self, array: np.ndarray, look: Look) -> None:
        """Makes the value in ``array``, mapped zeros of its shape and type.

        ``look`` is called between blocks, and raises where the value is not wanted any more.
        """
        raise NotImplementedError


class RowBlocks(BlockValue):
    """A value of which any rows can be made: ``rows(start, stop)``."""

    def __init__(self, shape: Sequence[int], dtype: Any, rows: Callable[[int, int], Any]) -> None:
        super().__init__(shape, dtype)
        self.rows = rows

    def write(self, array: np.ndarray, look: Look) -> None:
        for block in row_blocks(self.shape, self.dtype):
            look()
            set_rows(array, block, self.rows(block.start, block.stop))


class WholeBlocks(BlockValue):
    """A value that ``write`` makes from its beginning to its end."""

    def __init__(
        self, shape: Sequence[int], dtype: Any, write: Callable[[Any, Look], None]
    ) -> None:
        super().__init__(shape, dtype)
        self._write = write

    def write(self, array: np.ndarray, look: Look) -> None:
        self._write(array, look)


def elementwise(call: Callable[..., Any], *args: Any) -> RowBlocks:
    """``call`` of ``args``, of which some are :class:`RowBlocks` of the shape of the result."""
    shape = next(arg.shape for arg in args if isinstance(arg, RowBlocks))

    def rows(start: int, stop: int) -> Any:
        return call(*[_rows_of(arg, shape, start, stop) for arg in args])

    none = rows(0, 0)
    return RowBlocks(shape, none.dtype, rows)


def _rows_of(arg: Any, shape: tuple[int, ...], start: int, stop: int) -> Any:
    if isinstance(arg, RowBlocks):
        return arg.rows(start, stop)
    if np.ndim(arg) == len(shape) and np.shape(arg)[0] == shape[0] != 1:
        return arg[start:stop]
    return arg
