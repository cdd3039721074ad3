"""Elements that functions make of others."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Waited
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.pipelines.pipeline import END, Function, Pipeline, PipelineRun, Stage, Traversal

LOOK_SECONDS = 0.02
"""For how long to wait for another thread before looking whether to go on."""


class Map(Pipeline):
    """A function of each element."""

    def __init__(self, source: Pipeline, function: Function) -> None:
        self._source, self._function = source, function

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Mapping(self._source.iterate(run), self._function)


class _Mapping(Stage):
    def __init__(self, source: Traversal, function: Function) -> None:
        super().__init__(source)
        self._function = function

    def next(self) -> Any:
        element = self.source.next()
        return END if element is END else self._function(element)


class ParallelMap(Pipeline):
    """A function of each element, of several at the same time; they stay in order."""

    def __init__(self, source: Pipeline, function: Function, calls: int) -> None:
        if calls < 1:
            raise InvalidArgumentError(
                None, None, f"num_parallel_calls must be greater than zero, not {calls}."
            )
        self._source, self._function, self._calls = source, function, calls

    def iterate(self, run: PipelineRun) -> Traversal:
        return _ParallelMapping(self._source.iterate(run), self._function, self._calls, run)


class _ParallelMapping(Stage):
    def __init__(self, source: Traversal, function: Function, calls: int, run: PipelineRun) -> None:
        super().__init__(source)
        self._function, self._calls, self._run = function, calls, run
        self._workers = ThreadPoolExecutor(calls, "runnel-data-map")
        self._started: deque[Future[Any]] = deque()
        self._ended = False

    def next(self) -> Any:
        while not self._ended and len(self._started) < self._calls:
            element = self._drawn()
            if element is END:
                self._ended = True
            elif isinstance(element, Future):
                self._started.append(element)
            else:
                self._started.append(self._workers.submit(self._function, element))
        if not self._started:
            return END
        first = self._started.popleft()
        while True:
            self._run.check()
            try:
                return first.result(LOOK_SECONDS)
            except Waited:
                if first.done():  # the function itself raised it
                    raise

    def _drawn(self) -> Any:
        """The next element; an error of the source takes its place in the order."""
        try:
            return self.source.next()
        except Exception as error:
            if not self._started:
                raise
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed

    def close(self) -> None:
        self._workers.shutdown(wait=False, cancel_futures=True)
        super().close()


class Filter(Pipeline):
    """The elements of which a function says true."""

    def __init__(self, source: Pipeline, predicate: Function) -> None:
        self._source, self._predicate = source, predicate

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Filtering(self._source.iterate(run), self._predicate, run)


class _Filtering(Stage):
    def __init__(self, source: Traversal, predicate: Function, run: PipelineRun) -> None:
        super().__init__(source)
        self._predicate, self._run = predicate, run

    def next(self) -> Any:
        while True:
            self._run.check()
            element = self.source.next()
            if element is END:
                return END
            (answer,) = self._predicate(element)
            if np.shape(answer) != ():
                raise InvalidArgumentError(
                    None, None, "Filter predicate `f` must return a scalar bool."
                )
            if answer:
                return element


def pipeline_made(made: Any) -> Pipeline:
    """The pipeline that a function has made."""
    found = made[0][()] if isinstance(made[0], np.ndarray) else made[0]
    if not isinstance(found, Pipeline):
        raise InvalidArgumentError(None, None, f"A dataset is expected here, not {found!r}")
    return found


class FlatMap(Pipeline):
    """The elements of the pipelines that a function makes of elements, one after the other."""

    def __init__(self, source: Pipeline, function: Function) -> None:
        self._source, self._function = source, function

    def iterate(self, run: PipelineRun) -> Traversal:
        return _FlatMapping(self._source.iterate(run), self._function, run)


class _FlatMapping(Stage):
    def __init__(self, source: Traversal, function: Function, run: PipelineRun) -> None:
        super().__init__(source)
        self._function, self._run = function, run
        self._current: Traversal | None = None

    def next(self) -> Any:
        while True:
            self._run.check()
            if self._current is None:
                element = self.source.next()
                if element is END:
                    return END
                self._current = pipeline_made(self._function(element)).iterate(self._run)
            made = self._current.next()
            if made is not END:
                return made
            current, self._current = self._current, None
            current.close()

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        super().close()


class Interleave(Pipeline):
    """The elements of several pipelines that a function makes, a few of each in turn."""

    def __init__(self, source: Pipeline, function: Function, cycle: int, block: int) -> None:
        for name, value in (("cycle_length", cycle), ("block_length", block)):
            if value <= 0:
                raise InvalidArgumentError(None, None, f"{name} must be greater than zero.")
        self._source, self._function = source, function
        self._cycle, self._block = cycle, block

    def iterate(self, run: PipelineRun) -> Traversal:
        source = self._source.iterate(run)
        return _Interleaving(source, self._function, self._cycle, self._block, run)


class _Interleaving(Stage):
    def __init__(
        self, source: Traversal, function: Function, cycle: int, block: int, run: PipelineRun
    ) -> None:
        super().__init__(source)
        self._function, self._run = function, run
        self._open: list[Traversal | None] = [None] * cycle
        self._block = block
        self._at = self._drawn = 0
        self._ended = False

    def _advance(self) -> None:
        self._drawn = 0
        self._at = (self._at + 1) % len(self._open)

    def next(self) -> Any:
        while not self._ended or any(one is not None for one in self._open):
            self._run.check()
            current = self._open[self._at]
            if current is not None:
                made = current.next()
                if made is not END:
                    self._drawn += 1
                    if self._drawn == self._block:
                        self._advance()
                    return made
                self._open[self._at] = None
                current.close()
                self._advance()
            elif self._ended:
                self._advance()
            else:
                element = self.source.next()
                if element is END:
                    self._ended = True
                else:
                    pipeline = pipeline_made(self._function(element))
                    self._open[self._at] = pipeline.iterate(self._run)
        return END

    def close(self) -> None:
        for one in self._open:
            if one is not None:
                one.close()
        super().close()


def reduced(source: Pipeline, state: list[Any], function: Function, run: PipelineRun) -> list[Any]:
    """``function`` of the state and each element in turn, from ``state`` on."""
    traversal = source.iterate(run)
    try:
        while True:
            run.check()
            element = traversal.next()
            if element is END:
                return state
            state = function([*state, *element])
    finally:
        traversal.close()
