"""Several elements as one: stacked, padded, or a pipeline of their own; and one as several."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import DataLossError, InvalidArgumentError
from runnel.pipelines.pipeline import (
    END,
    Block,
    Element,
    Indexed,
    Pipeline,
    PipelineRun,
    Stage,
    Traversal,
    columns_of,
    joined_columns,
    rows_of,
)
from runnel.pipelines.sources import Slices, scalar
from runnel.queues.buffers import Buffers


def _require_positive(size: int) -> None:
    if size <= 0:
        raise InvalidArgumentError(None, None, "batch_size must be greater than zero.")


def stacked(values: list[Any], place: int, buffers: Buffers) -> np.ndarray:
    """The values of a component of several elements in one array."""
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        first, other = values[0], next(v for v in values if v.shape != values[0].shape)
        raise InvalidArgumentError(
            None,
            None,
            f"Cannot batch tensors with different shapes in component {place}. First element had "
            f"shape {list(first.shape)} and another element had shape {list(other.shape)}.",
        )
    (shape,), dtype = shapes, values[0].dtype
    if dtype == object:
        out = np.empty((len(values), *shape), object)
        for i, value in enumerate(values):
            out[i] = value if shape else value[()]
        return out
    if not shape:
        return np.array(values, dtype)
    return np.stack(values, out=buffers.empty((len(values), *shape), dtype))


def batches(count: int, size: int, drop_remainder: bool) -> int:
    """How many batches ``count`` elements make."""
    return count if count < 0 else count // size if drop_remainder else -(-count // size)


class Batch(Pipeline):
    """So many elements stacked; at the end maybe fewer."""

    def __init__(self, source: Pipeline, size: int, drop_remainder: bool) -> None:
        _require_positive(size)
        self._source, self._size, self._drop = source, size, drop_remainder
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Batching(self._source.iterate(run), self._size, self._drop, run)

    def cardinality(self) -> int:
        return batches(self._source.cardinality(), self._size, self._drop)


class _Batching(Stage):
    def __init__(
        self, source: Traversal, size: int, drop_remainder: bool, run: PipelineRun
    ) -> None:
        super().__init__(source)
        self._size, self._drop, self._run = size, drop_remainder, run
        self._ended = False
        self._buffers = Buffers()
        """Where batches lie: a compiled step takes them as they are."""

    def next(self) -> Any:
        self._run.check()
        if self.source.has_blocks:
            return self._of_blocks()
        elements: list[Element] = []
        draw = self.source.next
        while not self._ended and len(elements) < self._size:
            element = draw()
            if element is END:
                self._ended = True
            else:
                elements.append(element)
        if not elements or (self._drop and len(elements) < self._size):
            return END
        return self.joined(columns_of(elements))

    def _of_blocks(self) -> Any:
        """The next batch, of elements that come several at a time."""
        blocks: list[Block] = []
        missing = self._size
        while missing and not self._ended:
            block = self.source.block(missing)
            if block is None:
                self._ended = True
            else:
                blocks.append(block)
                missing -= len(block[0])
        if not blocks or (self._drop and missing):
            return END
        columns = zip(*blocks, strict=True)
        return self.joined([joined_columns(some, self._buffers) for some in columns])

    def joined(self, block: Block) -> Element:
        """Several elements as one."""
        buffers = self._buffers
        return [stacked(c, i, buffers) if isinstance(c, list) else c for i, c in enumerate(block)]

    def own_state(self) -> Any:
        return self._ended

    def restore_own(self, state: Any) -> None:
        self._ended = state


class PaddedBatch(Pipeline):
    """So many elements stacked, each filled up to a shape, or to the largest of them (-1)."""

    def __init__(
        self,
        source: Pipeline,
        size: int,
        shapes: list[list[int]],
        fillings: list[Any],
        drop_remainder: bool,
    ) -> None:
        _require_positive(size)
        self._source, self._size, self._drop = source, size, drop_remainder
        self._shapes, self._fillings = shapes, fillings
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _PaddedBatching(
            self._source.iterate(run), self._size, self._drop, run, self._shapes, self._fillings
        )

    def cardinality(self) -> int:
        return batches(self._source.cardinality(), self._size, self._drop)


class _PaddedBatching(_Batching):
    def __init__(
        self,
        source: Traversal,
        size: int,
        drop_remainder: bool,
        run: PipelineRun,
        shapes: list[list[int]],
        fillings: list[Any],
    ) -> None:
        super().__init__(source, size, drop_remainder, run)
        self._shapes, self._fillings = shapes, fillings

    def joined(self, block: Block) -> Element:
        return [self._padded(column, i) for i, column in enumerate(block)]

    def _padded(self, column: Any, place: int) -> np.ndarray:
        wanted, filling = self._shapes[place], self._fillings[place]
        if not isinstance(column, list) and column.ndim == len(wanted) + 1:
            sizes = [have if size < 0 else size for have, size in zip(column.shape[1:], wanted)]
            if list(column.shape[1:]) == sizes:
                return column
        arrays = [np.asarray(value) for value in rows_of(column)]
        if any(array.ndim != len(wanted) for array in arrays):
            raise InvalidArgumentError(
                None,
                None,
                f"All elements in a batch must have the same rank as the padded shape for component"
                f"{place}: expected rank {len(wanted)} but got element with rank "
                f"{next(a.ndim for a in arrays if a.ndim != len(wanted))}",
            )
        sizes = [
            max(array.shape[d] for array in arrays) if size < 0 else size
            for d, size in enumerate(wanted)
        ]
        for array in arrays:
            if any(have > size for have, size in zip(array.shape, sizes, strict=True)):
                raise DataLossError(
                    None,
                    None,
                    f"Attempted to pad to a smaller size than the input element: component "
                    f"{place} is of shape {list(array.shape)}, its padded shape {sizes}.",
                )
        out = np.empty((len(arrays), *sizes), arrays[0].dtype)
        out[...] = np.asarray(filling)
        for i, array in enumerate(arrays):
            part: Any = tuple(slice(size) for size in array.shape)
            # The string of a scalar, not the array that holds it.
            out[(i, *part)] = array if array.ndim else array[()]
        return out


class Unbatch(Pipeline):
    """The rows of elements as elements."""

    def __init__(self, source: Pipeline) -> None:
        self._source = source
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Unbatching(self._source.iterate(run), run)


class _Unbatching(Stage):
    def __init__(self, source: Traversal, run: PipelineRun) -> None:
        super().__init__(source)
        self._run = run
        self._element: Element | None = None
        self._rows: Traversal | None = None

    def next(self) -> Any:
        while True:
            if self._rows is not None:
                row = self._rows.next()
                if row is not END:
                    return row
            self._element = self._rows = None
            element = self.source.next()
            if element is END:
                return END
            self._begin(element)

    def _begin(self, element: Element) -> Traversal:
        self._rows = Slices(element).iterate(self._run)
        self._element = element
        return self._rows

    def own_state(self) -> Any:
        return None if self._rows is None else [self._element, self._rows.state()]

    def restore_own(self, state: Any) -> None:
        if state is not None:
            element, place = state
            self._begin(element).restore(place)


class Kept(Pipeline):
    """Elements that are there already."""

    def __init__(self, elements: list[Element]) -> None:
        self.elements = elements

    def iterate(self, run: PipelineRun) -> Traversal:
        return Indexed(len(self.elements), self.elements.__getitem__)

    def cardinality(self) -> int:
        return len(self.elements)


class Window(Pipeline):
    """Elements that are pipelines themselves: for each component one over a window of it."""

    def __init__(
        self, source: Pipeline, size: int, shift: int, stride: int, drop_remainder: bool
    ) -> None:
        for name, value in (("size", size), ("shift", shift), ("stride", stride)):
            if value <= 0:
                raise InvalidArgumentError(
                    None, None, f"Window {name} must be greater than zero, not {value}."
                )
        self._source = source
        self._how = (size, shift, stride, drop_remainder)
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Windowing(self._source.iterate(run), *self._how)


class _Windowing(Stage):
    def __init__(
        self, source: Traversal, size: int, shift: int, stride: int, drop_remainder: bool
    ) -> None:
        super().__init__(source)
        self._size, self._shift, self._stride, self._drop = size, shift, stride, drop_remainder
        self._buffer: list[Element] = []
        self._to_skip = 0
        self._ended = False

    def next(self) -> Any:
        wanted = (self._size - 1) * self._stride + 1
        while not self._ended and len(self._buffer) < wanted:
            element = self.source.next()
            if element is END:
                self._ended = True
            elif self._to_skip:
                self._to_skip -= 1
            else:
                self._buffer.append(element)
        if not self._buffer or (self._drop and len(self._buffer) < wanted):
            return END
        chosen = self._buffer[: wanted : self._stride]
        self._to_skip = max(self._shift - len(self._buffer), 0)
        self._buffer = self._buffer[self._shift :]
        out = []
        for values in zip(*chosen, strict=True):
            out.append(scalar(Kept([[value] for value in values])))
        return out

    def own_state(self) -> Any:
        return [self._buffer, self._to_skip, self._ended]

    def restore_own(self, state: Any) -> None:
        self._buffer, self._to_skip, self._ended = state
