"""Elements made of several: unique ones, sparse batches, totals by key."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import DataLossError, InvalidArgumentError
from runnel.pipelines.pipeline import (
    END,
    Element,
    Function,
    Pipeline,
    PipelineRun,
    Stage,
    Traversal,
)


class FirstOccurrences(Pipeline):
    """The elements, each of one component, that no earlier one is equal to."""

    def __init__(self, source: Pipeline) -> None:
        self._source = source
        self.sources = (source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Uniting(self._source.iterate(run), run)


class _Uniting(Stage):
    def __init__(self, source: Traversal, run: PipelineRun) -> None:
        super().__init__(source)
        self._run = run
        self._seen: dict[Any, Element] = {}

    def next(self) -> Any:
        while True:
            self._run.check()
            element = self.source.next()
            if element is END:
                return END
            if self._add(element):
                return element

    def _add(self, element: Element) -> bool:
        value = np.asarray(element[0])
        content = tuple(value.reshape(-1).tolist()) if value.dtype == object else value.tobytes()
        key = (value.shape, content)
        if key in self._seen:
            return False
        self._seen[key] = element
        return True

    def own_state(self) -> Any:
        return list(self._seen.values())

    def restore_own(self, state: Any) -> None:
        for element in state:
            self._add(element)


class DenseToSparseBatch(Pipeline):
    """So many elements, each of one tensor, as the rows of a sparse tensor of a shape."""

    def __init__(self, source: Pipeline, size: int, row_shape: list[int]) -> None:
        if size <= 0:
            raise InvalidArgumentError(None, None, "Batch size must be greater than zero.")
        self._source, self._size, self._row_shape = source, size, row_shape
        self.sources = (source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _SparseBatching(self._source.iterate(run), self._size, self._row_shape, run)


class _SparseBatching(Stage):
    def __init__(
        self, source: Traversal, size: int, row_shape: list[int], run: PipelineRun
    ) -> None:
        super().__init__(source)
        self._size, self._row_shape, self._run = size, row_shape, run

    def next(self) -> Any:
        rows: list[np.ndarray] = []
        while len(rows) < self._size:
            self._run.check()
            element = self.source.next()
            if element is END:
                break
            rows.append(np.asarray(element[0]))
        return [self._sparse(rows)] if rows else END

    def _sparse(self, rows: list[np.ndarray]) -> np.ndarray:
        wanted = self._row_shape
        for row in rows:
            if row.ndim != len(wanted):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Input element had shape {list(row.shape)} that is incompatible with the "
                    f"row shape {wanted}",
                )
            if any(0 <= most < have for have, most in zip(row.shape, wanted, strict=True)):
                raise DataLossError(
                    None, None, f"Input element had shape {list(row.shape)}, larger than {wanted}"
                )
        sizes = [
            max(row.shape[d] for row in rows) if size < 0 else size for d, size in enumerate(wanted)
        ]
        places = [
            np.concatenate(
                [np.full((row.size, 1), i), np.indices(row.shape).reshape(row.ndim, row.size).T],
                axis=1,
            )
            for i, row in enumerate(rows)
        ]
        out = np.empty(3, object)
        out[0] = np.concatenate(places).astype(np.int64)
        out[1] = np.concatenate([row.reshape(-1) for row in rows])
        out[2] = np.array([len(rows), *sizes], np.int64)
        return out


class GroupByReducer(Pipeline):
    """For each key what functions make of all its elements: begun, gone over, finished."""

    def __init__(
        self, source: Pipeline, key: Function, begin: Function, reduce: Function, finish: Function
    ) -> None:
        self._source = source
        self.sources = (source,)
        self._own = (key, begin, reduce, finish)
        self.functions = self._own

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Reducing(self._source.iterate(run), *self._own, run)


class _Reducing(Stage):
    def __init__(
        self,
        source: Traversal,
        key: Function,
        begin: Function,
        reduce: Function,
        finish: Function,
        run: PipelineRun,
    ) -> None:
        super().__init__(source)
        self._key, self._begin, self._reduce, self._finish = key, begin, reduce, finish
        self._run = run
        self._states: dict[int, Element] = {}
        self._given: int | None = None
        """How many keys have been given; None before all elements were seen."""

    def next(self) -> Any:
        while self._given is None:
            self._run.check()
            element = self.source.next()
            if element is END:
                self._given = 0
            else:
                key = int(self._key(element)[0])
                if key not in self._states:
                    self._states[key] = self._begin([np.int64(key)])
                self._states[key] = self._reduce([*self._states[key], *element])
        keys = sorted(self._states)
        if self._given == len(keys):
            return END
        self._given += 1
        return self._finish(self._states[keys[self._given - 1]])

    def own_state(self) -> Any:
        return [[[key, state] for key, state in self._states.items()], self._given]

    def restore_own(self, state: Any) -> None:
        states, self._given = state
        self._states = {key: one for key, one in states}
