"""Where elements come from: tensors, their slices, numbers, Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.pipelines.pipeline import END, Element, FromPython, Pipeline, PipelineRun, Traversal


class Tensors(Pipeline):
    """One element."""

    def __init__(self, components: Element) -> None:
        self._components = components

    def iterate(self, run: PipelineRun) -> Traversal:
        return FromPython(iter([self._components]))


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

    def iterate(self, run: PipelineRun) -> Traversal:
        return FromPython(map(list, zip(*map(_rows, self._components), strict=True)))


def _rows(component: np.ndarray) -> Any:
    """The rows of an array, single strings as arrays too."""
    if component.dtype != object or component.ndim > 1:
        return component
    return map(scalar, component)


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
        return FromPython(self._rows())

    def _rows(self) -> Iterator[Element]:
        indices, values, shape = self._parts
        for row in range(int(shape[0])):
            begin, end = np.searchsorted(indices[:, 0], [row, row + 1])
            yield [indices[begin:end, 1:], values[begin:end], shape[1:]]


class Numbers(Pipeline):
    """The numbers of a range."""

    def __init__(self, start: int, stop: int, step: int, dtype: np.dtype) -> None:
        if not step:
            raise InvalidArgumentError(None, None, "step must be a non-zero integer.")
        self._range, self._dtype = range(start, stop, step), dtype

    def iterate(self, run: PipelineRun) -> Traversal:
        kind: Any = self._dtype.type
        return FromPython([kind(number)] for number in self._range)


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
