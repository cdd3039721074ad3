"""What the elements of a dataset take, in time and bytes, gathered for summaries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from runnel.pipelines.pipeline import (
    END,
    Block,
    Pipeline,
    PipelineRun,
    SameNumber,
    Stage,
    Traversal,
    rows_of,
    time_elements,
)


class CountedValues(Protocol):
    """Of many values, how often which occur."""

    def add(self, values: Sequence[float], /) -> None:
        """Counts more values."""


class Statistics:
    """Numbers by name: distributions of values, and scalars."""

    def __init__(self, distribution: Callable[[], CountedValues]) -> None:
        self._distribution = distribution
        # Guards the others: steps and the threads of pipelines write them.
        self._lock = threading.Lock()
        self._distributions: dict[str, CountedValues] = {}
        self._scalars: dict[str, float] = {}

    def samples(self, name: str, values: Sequence[float]) -> None:
        """Adds values to a distribution."""
        with self._lock:
            if name not in self._distributions:
                self._distributions[name] = self._distribution()
            self._distributions[name].add(values)

    def scalar(self, name: str, value: float) -> None:
        """Says how large something is now."""
        with self._lock:
            self._scalars[name] = value

    def show(
        self, distribution: Callable[[str, Any], None], scalar: Callable[[str, float], None]
    ) -> None:
        """Calls these with the name and value of each, none of which changes meanwhile."""
        with self._lock:
            for name, values in self._distributions.items():
                distribution(name, values)
            for name, value in self._scalars.items():
                scalar(name, value)

    def abandon(self, error: Exception) -> None:
        """It is gone with its session: nothing waits for it."""


class _Prefixed:
    """Statistics whose names begin alike."""

    def __init__(self, statistics: Statistics, prefix: str) -> None:
        self._statistics, self._prefix = statistics, f"{prefix}::" if prefix else ""

    def samples(self, name: str, values: Sequence[float]) -> None:
        self._statistics.samples(self._prefix + name, values)

    def scalar(self, name: str, value: float) -> None:
        self._statistics.scalar(self._prefix + name, value)


class Recorded(SameNumber):
    """The same elements, whose traversals tell ``statistics`` what they take."""

    waits = True  # what it takes is what its source takes

    def __init__(self, source: Pipeline, statistics: Statistics, prefix: str) -> None:
        self._source = source
        self._record = _Prefixed(statistics, prefix)
        self.sources = (source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        inner = PipelineRun(within=run)
        inner.record = self._record
        return self._source.iterate(inner)

    def as_repeated(self) -> Pipeline:
        return self


class Optimized(SameNumber):
    """The same elements, as TensorFlow's rewrites of datasets have them.

    One of them shows in the elements: a shuffle that is repeated becomes one operation, which draws
    the orders of all repetitions from one stream.
    """

    waits = True  # what it takes is what its source takes

    def __init__(self, source: Pipeline, joins_shuffles: bool, times_stages: bool) -> None:
        self._source = source
        self._joins_shuffles, self._times_stages = joins_shuffles, times_stages
        self.sources = (source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        inner = PipelineRun(within=run)
        inner.joins_shuffles = self._joins_shuffles
        inner.times_stages = self._times_stages
        return self._source.iterate(inner)


class _Measured(SameNumber):
    """The same elements, of which something is recorded under a name."""

    waits = True  # what it takes is what its source takes

    def __init__(self, source: Pipeline, tag: str) -> None:
        self._source, self._tag = source, tag
        self.sources = (source,)


class Latency(_Measured):
    """The same elements; how many microseconds each takes is recorded."""

    def iterate(self, run: PipelineRun) -> Traversal:
        source = self._source.iterate(run)
        if run.record is not None:
            time_elements(source, self._tag, run.record)
        return source


class BytesProduced(_Measured):
    """The same elements; how many bytes each has is recorded."""

    def iterate(self, run: PipelineRun) -> Traversal:
        source = self._source.iterate(run)
        return source if run.record is None else _Weighing(source, self._tag, run.record)


class _Weighing(Stage):
    def __init__(self, source: Traversal, tag: str, record: Any) -> None:
        super().__init__(source)
        self._tag, self._record = tag, record

    def next(self) -> Any:
        element = self.source.next()
        if element is not END:
            self._record.samples(self._tag, [bytes_of(element)])
        return element

    @property
    def has_blocks(self) -> bool:  # type: ignore[override]
        return self.source.has_blocks

    @property
    def has_calls(self) -> bool:  # type: ignore[override]
        return self.source.has_calls

    def block(self, most: int) -> Block | None:
        block = self.source.block(most)
        if block is not None:
            rows = zip(*map(rows_of, block), strict=True)
            self._record.samples(self._tag, [bytes_of(row) for row in rows])
        return block


_STRING = 8
"""What TensorFlow counts for a string beside its characters: a pointer."""
_VARIANT = 64
"""What TensorFlow counts for a variant, whatever is in it."""


def bytes_of(element: Iterable[Any]) -> int:
    """How many bytes TensorFlow says that an element has."""
    total = 0
    for value in element:
        if isinstance(value, bytes):
            total += _STRING + len(value)
        elif (array := np.asarray(value)).dtype == object:
            total += sum(
                _STRING + len(one) if isinstance(one, bytes) else _VARIANT
                for one in array.reshape(-1).tolist()
            )
        else:
            total += array.nbytes
    return total
