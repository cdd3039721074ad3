"""Elements that functions make of others."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Waited
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.pipelines.pipeline import (
    END,
    Element,
    Function,
    Pipeline,
    PipelineRun,
    Stage,
    Traversal,
)

LOOK_SECONDS = 0.02
"""For how long to wait for another thread before looking whether to go on."""


class Map(Pipeline):
    """A function of each element."""

    def __init__(self, source: Pipeline, function: Function) -> None:
        self._source, self._function = source, function
        self.sources = (self._source,)
        self.functions = (self._function,)

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
        self.sources = (self._source,)
        self.functions = (self._function,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _ParallelMapping(self._source.iterate(run), self._function, self._calls, run)


class _ParallelMapping(Stage):
    def __init__(self, source: Traversal, function: Function, calls: int, run: PipelineRun) -> None:
        super().__init__(source)
        self._function, self._calls, self._run = function, calls, run
        self._workers = ThreadPoolExecutor(calls, "runnel-data-map")
        self._started: deque[tuple[Element | Exception, Future[Any]]] = deque()
        """What the function is being called with, in order; an error stands for an element."""
        self._ended = False

    def next(self) -> Any:
        while not self._ended and len(self._started) < self._calls:
            element = self._drawn()
            if element is END:
                self._ended = True
            else:
                self._start(element)
        if not self._started:
            return END
        _, first = self._started.popleft()
        while True:
            self._run.check()
            try:
                return first.result(LOOK_SECONDS)
            except Waited:
                if first.done():  # the function itself raised it
                    raise

    def _start(self, element: Element | Exception) -> None:
        if isinstance(element, Exception):
            future: Future[Any] = Future()
            future.set_exception(element)
        else:
            future = self._workers.submit(self._function, element)
        self._started.append((element, future))

    def _drawn(self) -> Any:
        """The next element; an error of the source takes its place in the order."""
        try:
            return self.source.next()
        except Exception as error:
            if not self._started:
                raise
            return error

    def close(self) -> None:
        self._workers.shutdown(wait=False, cancel_futures=True)
        super().close()

    def own_state(self) -> Any:
        return [[element for element, _ in self._started], self._ended]

    def restore_own(self, state: Any) -> None:
        started, self._ended = state
        for element in started:
            self._start(element)


class Filter(Pipeline):
    """The elements of which a function says true."""

    def __init__(self, source: Pipeline, predicate: Function) -> None:
        self._source, self._predicate = source, predicate
        self.sources = (self._source,)
        self.functions = (self._predicate,)

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
