"""Elements that functions make of others."""

from __future__ import annotations

import itertools
import time
import weakref
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Waited
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.pipelines.pipeline import (
    END,
    Block,
    Element,
    Function,
    Pipeline,
    PipelineRun,
    Stage,
    Traversal,
    columns_of,
    elements_of,
    joined_columns,
)
from runnel.threads import Threads

_WORTH_A_THREAD = 0.002
"""From how many seconds of work on, it is worth to be shared between threads."""
_IN_LINE = 4
"""How many elements there are for each thread: the one it works on, and those that keep it busy
while whoever takes the results does something else, such as making a batch of them."""
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


class Rowwise(Stage):
    """A traversal that calls a function of each element, of several at once where it can.

    Of elements that it has taken from the source together the function may fail for one: then it is
    called for one after the other, and the rest waits here.
    """

    def __init__(self, source: Traversal, function: Function) -> None:
        super().__init__(source)
        self._function = function
        self._waiting: deque[Element] = deque()
        """Elements of the source that the function has not been called with."""
        self._error: Exception | None = None
        """What the source raised behind them."""

    @property
    def has_blocks(self) -> bool:  # type: ignore[override]
        return self._function.has_rows

    @property
    def has_calls(self) -> bool:  # type: ignore[override]
        return self._function.has_rows

    def _taken(self) -> Any:
        """The next element of the source, or END."""
        if self._waiting:
            return self._waiting.popleft()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self.source.next()

    def _taken_block(self, most: int) -> tuple[Block, int] | None:
        """The next elements of the source, and how many; None at the end."""
        source = self.source
        if self._waiting:
            return columns_of([self._waiting.popleft()]), 1
        if self._error is None and source.has_blocks:
            block = source.block(most)
            return None if block is None else (block, len(block[0]))
        elements: list[Element] = []
        while len(elements) < most:
            try:
                element = self._taken()
            except Exception as error:
                if not elements:
                    raise
                self._error = error
                break
            if element is END:
                break
            elements.append(element)
        return (columns_of(elements), len(elements)) if elements else None

    def _called(self, block: Block, count: int) -> Block | None:
        """What the function gives for each element; None, and they wait, if it fails for one."""
        if count > 1:
            try:
                return self._function.rows(block, count)
            except Exception:
                pass  # which element it is, calls one after the other will tell
        self._waiting.extendleft(reversed(elements_of(block)))
        return None

    def own_state(self) -> Any:
        return [list(self._waiting), self._error] if self._waiting or self._error else None

    def restore_own(self, state: Any) -> None:
        if state is not None:
            waiting, self._error = state
            self._waiting.extend(waiting)


class _Mapping(Rowwise):
    def next(self) -> Any:
        element = self._taken()
        return END if element is END else self._function(element)

    def block(self, most: int) -> Block | None:
        taken = self._taken_block(most)
        if taken is None:
            return None
        made = self._called(*taken)
        return columns_of([self.next()]) if made is None else made


class ParallelMap(Pipeline):
    """A function of each element, of several at the same time; they stay in order."""

    has_threads = True

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


class _ParallelMapping(Rowwise):
    def __init__(self, source: Traversal, function: Function, calls: int, run: PipelineRun) -> None:
        super().__init__(source, function)
        self._calls, self._run = calls, run
        self._workers = Threads("runnel-data-map", calls)
        # Of a traversal that nobody closes, such as one of many that another makes, too.
        weakref.finalize(self, self._workers.close).atexit = False
        self._started: deque[tuple[Element | Exception, Future[Any]]] = deque()
        """What the function is being called with, in order; an error stands for an element."""
        self._ended = False
        self._seconds = 0.0
        """How long a thread took for an element, when it was last seen."""

    def next(self) -> Any:
        while not self._ended and len(self._started) < _IN_LINE * self._calls:
            element = self._drawn()
            if element is END:
                self._ended = True
            else:
                self._start(element)
        return self._finished() if self._started else END

    def _finished(self) -> Element:
        """What the first of the calls that were started gives."""
        _, first = self._started.popleft()
        return self._result(first)

    def _result(self, future: Future[Any]) -> Any:
        while True:
            self._run.check()
            try:
                return future.result(LOOK_SECONDS)
            except Waited:
                if future.done():  # the function itself raised it
                    raise

    def block(self, most: int) -> Block | None:
        if self._started:
            return columns_of([self._finished()])
        taken = self._taken_block(most)
        if taken is None:
            return None
        block, count = taken
        parts = self._calls if self._seconds * count > _WORTH_A_THREAD else 1
        start = time.perf_counter()
        made = self._called(block, count) if parts == 1 else self._in_parts(block, count, parts)
        self._seconds = (time.perf_counter() - start) * parts / count
        if made is not None:
            return made
        return columns_of([self._function(self._waiting.popleft())])

    def _in_parts(self, block: Block, count: int, parts: int) -> Block | None:
        """What :meth:`_called` gives, by several threads."""
        ends = [count * part // parts for part in range(parts + 1)]
        futures = [
            self._workers.submit(self._function.rows, [c[begin:end] for c in block], end - begin)
            for begin, end in itertools.pairwise(ends)
            if begin < end
        ]
        try:
            made = [self._result(future) for future in futures]
        except Exception:
            self._run.check()  # which raises it, if it is an error of whoever asks
            self._waiting.extendleft(reversed(elements_of(block)))
            return None
        return [joined_columns(columns) for columns in zip(*made, strict=True)]

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
            return self._taken()
        except Exception as error:
            if not self._started:
                raise
            return error

    def close(self) -> None:
        self._workers.close()
        super().close()

    def own_state(self) -> Any:
        return [[element for element, _ in self._started], self._ended, super().own_state()]

    def restore_own(self, state: Any) -> None:
        started, self._ended, *waiting = state
        for element in started:
            self._start(element)
        super().restore_own(waiting[0] if waiting else None)


class Filter(Pipeline):
    """The elements of which a function says true."""

    def __init__(self, source: Pipeline, predicate: Function, name: str = "Filter") -> None:
        self._source, self._predicate, self._name = source, predicate, name
        self.sources = (self._source,)
        self.functions = (self._predicate,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Filtering(self._source.iterate(run), self._predicate, run, self._name)


class _Filtering(Rowwise):
    def __init__(self, source: Traversal, predicate: Function, run: PipelineRun, name: str) -> None:
        super().__init__(source, predicate)
        self._run, self._name = run, name
        self._kept = self._dropped = 0

    def _count(self, kept: int, dropped: int) -> None:
        """Tells, if someone asks, how many elements were dropped so far."""
        if self._run.record is not None:
            self._kept += kept
            self._dropped += dropped
            self._run.record.scalar(f"{self._name}::filtered_elements", self._kept)
            self._run.record.scalar(f"{self._name}::dropped_elements", self._dropped)

    def next(self) -> Any:
        while True:
            self._run.check()
            element = self._taken()
            if element is END:
                return END
            (answer,) = self._function(element)
            if np.shape(answer) != ():
                raise InvalidArgumentError(
                    None, None, "Filter predicate `f` must return a scalar bool."
                )
            self._count(bool(answer), not answer)
            if answer:
                return element

    def block(self, most: int) -> Block | None:
        while True:
            self._run.check()
            taken = self._taken_block(most)
            if taken is None:
                return None
            block, count = taken
            made = self._called(block, count)
            if made is None or np.shape(made[0]) != (count,):
                if made is not None:
                    self._waiting.extendleft(reversed(elements_of(block)))
                element = self.next()
                return None if element is END else columns_of([element])
            places = np.flatnonzero(made[0])
            self._count(len(places), count - len(places))
            if len(places) == count:
                return block
            if len(places):
                return [
                    [column[place] for place in places.tolist()]
                    if isinstance(column, list)
                    else column[places]
                    for column in block
                ]


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
