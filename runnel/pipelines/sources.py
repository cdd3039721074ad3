"""Where elements come from: tensors, their slices, numbers, Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.pipelines.pipeline import (
    END,
    INFINITE,
    Element,
    Indexed,
    Pipeline,
    PipelineRun,
    Traversal,
    not_saved,
)
from runnel.queues.buffers import Buffers


class Tensors(Pipeline):
    """One element."""

    def __init__(self, components: Element) -> None:
        self._components = components

    def iterate(self, run: PipelineRun) -> Traversal:
        return Indexed(1, lambda place: self._components)

    def cardinality(self) -> int:
        return 1


class Slices(Pipeline):
    """An element for each row of the components."""

    def __init__(self, components: Element) -> None:
        sizes = {len(component) for component in components}
        if len(sizes) != 1:
            raise InvalidArgumentError(
                None,
                None,
                f"All components must have the same size in their first dimension, not {sizes}",
            )
        self._components = components
        self._size = sizes.pop()
        self._buffers = Buffers()

    def iterate(self, run: PipelineRun) -> Traversal:
        return Indexed(self._size, self._row, self._rows, self._rows_at)

    def _rows(self, begin: int, end: int) -> Element:
        return [component[begin:end].copy() for component in self._components]

    def _rows_at(self, places: list[int]) -> Element:
        return [self._taken(component, places) for component in self._components]

    def _taken(self, component: np.ndarray, places: list[int]) -> np.ndarray:
        if component.dtype == object:
            return component[places]
        out = self._buffers.empty((len(places), *component.shape[1:]), component.dtype)
        # The places are there; a mode that checked them would copy twice.
        return component.take(places, 0, out, "clip")

    def cardinality(self) -> int:
        return self._size

    def _row(self, place: int) -> Element:
        return [
            scalar(component[place])
            if component.ndim == 1 and component.dtype == object
            else component[place]
            for component in self._components
        ]


def scalar(value: Any) -> np.ndarray:
    """A string, or another object, as a tensor's value."""
    out = np.empty((), object)
    out[()] = value
    return out


class SparseRows(Pipeline):
    """An element for each row of a sparse tensor: indices, values and shape."""

    def __init__(self, indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> None:
        if len(indices) > 1 and (np.diff(indices[:, 0]) < 0).any():
            raise InvalidArgumentError(
                None, None, "The elements of the sparse tensor must be in the order of rows."
            )
        self._parts = (indices, values, shape)

    def iterate(self, run: PipelineRun) -> Traversal:
        return Indexed(self.cardinality(), self._row)

    def cardinality(self) -> int:
        return int(self._parts[2][0])

    def _row(self, place: int) -> Element:
        indices, values, shape = self._parts
        begin, end = np.searchsorted(indices[:, 0], [place, place + 1])
        return [indices[begin:end, 1:], values[begin:end], shape[1:]]


class Numbers(Pipeline):
    """The numbers of a range."""

    def __init__(self, start: int, stop: int, step: int, dtype: np.dtype) -> None:
        if not step:
            raise InvalidArgumentError(None, None, "step must be a non-zero integer.")
        self._range, self._dtype = range(start, stop, step), dtype
        # What len() refuses: a range may have more numbers than an index.
        self._count = max(0, -((start - stop) // step))

    def iterate(self, run: PipelineRun) -> Traversal:
        kind: Any = self._dtype.type
        numbers = self._range
        return Indexed(self._count, lambda place: [kind(numbers[place])], self._between)

    def _between(self, begin: int, end: int) -> Element:
        steps = np.arange(begin, end, dtype=np.int64) * self._range.step
        return [(steps + self._range.start).astype(self._dtype, copy=False)]

    def cardinality(self) -> int:
        return self._count


class RandomNumbers(Pipeline):
    """Random numbers without end; ``words(*state)`` makes a source of them."""

    def __init__(self, words: Callable[..., Any], state: list[int]) -> None:
        self._words, self._state = words, state

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Drawing(self._words, self._state)

    def cardinality(self) -> int:
        return INFINITE


class _Drawing(Traversal):
    def __init__(self, words: Callable[..., Any], state: list[int]) -> None:
        self._make, self._words = words, words(*state)

    def next(self) -> Any:
        return [np.int64(self._words())]

    def state(self) -> Any:
        return self._words.state()

    def restore(self, state: Any) -> None:
        self._words = self._make(*state)


class Generated(Pipeline):
    """What a Python generator gives; ``begin()`` makes it, and gives what makes each element."""

    def __init__(self, begin: Callable[[], Callable[[], Any]]) -> None:
        self._begin = begin

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Generation(self._begin)


class _Generation(Traversal):
    def __init__(self, begin: Callable[[], Callable[[], Any]]) -> None:
        self._begin = begin
        self._draw: Callable[[], Any] | None = None

    def next(self) -> Any:
        if self._draw is None:
            self._draw = self._begin()
        return self._draw()

    def close(self) -> None:
        self._draw = lambda: END

    def state(self) -> Any:
        raise not_saved(
            "An iterator over Dataset.from_generator",
            "where a Python generator stands is not known. Use from_tensor_slices, or files.",
        )
