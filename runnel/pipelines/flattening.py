"""The elements of the pipelines that functions make: one after the other, or in turn."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.pipelines.buffering import Prefetch, Prefetching
from runnel.pipelines.mapping import LOOK_SECONDS
from runnel.pipelines.pipeline import (
    END,
    Element,
    Function,
    Pipeline,
    PipelineRun,
    Stage,
    Traversal,
    resumed,
    state_of,
)


def pipeline_made(made: Any) -> Pipeline:
    """The pipeline that a function has made."""
    found = made[0][()] if isinstance(made[0], np.ndarray) else made[0]
    if not isinstance(found, Pipeline):
        raise InvalidArgumentError(None, None, f"A dataset is expected here, not {found!r}")
    return found


class MadePipeline(Traversal):
    """The elements of the pipeline that ``function`` makes of ``element``."""

    def __init__(
        self, element: Element, function: Function, run: PipelineRun, ahead: Ahead | None = None
    ) -> None:
        self._element, self._function, self._run, self._ahead = element, function, run, ahead
        self._pipeline = self._made()
        self._traversal = self._pipeline.iterate(run)

    def _made(self) -> Pipeline:
        made = pipeline_made(self._function(self._element))
        return made if self._ahead is None else self._ahead.of(made)

    def next(self) -> Any:
        return self._traversal.next()

    @property
    def is_ready(self) -> bool:
        """Whether the next element need not be waited for."""
        return not isinstance(self._traversal, Prefetching) or self._traversal.is_ready

    def start(self) -> None:
        """Has its thread, if it has one, make the first elements."""
        if isinstance(self._traversal, Prefetching):
            self._traversal.start()

    def close(self) -> None:
        self._traversal.close()

    def state(self) -> Any:
        return [self._element, state_of(self._pipeline, self._traversal)]

    @classmethod
    def resumed(
        cls, state: Any, function: Function, run: PipelineRun, ahead: Ahead | None = None
    ) -> MadePipeline:
        """One that goes on where another stood."""
        element, place = state
        made = cls(element, function, run, ahead)
        made._traversal.close()
        made._traversal = resumed(made._pipeline, run, place)
        return made


class Ahead:
    """How pipelines that are open at the same time are read ahead: by a thread of each.

    At most ``calls`` of the threads make elements at a time, each ``buffer`` elements ahead.
    """

    def __init__(self, calls: int, buffer: int) -> None:
        self._permits, self._buffer = threading.Semaphore(calls), buffer
        self.arrived = threading.Event()
        """Set when an element is ready."""

    def of(self, pipeline: Pipeline) -> Pipeline:
        """The same elements, made ahead."""
        return Prefetch(pipeline, self._buffer, self._permits, self.arrived)


class FlatMap(Pipeline):
    """The elements of the pipelines that a function makes of elements, one after the other."""

    def __init__(self, source: Pipeline, function: Function) -> None:
        self._source, self._function = source, function
        self.sources = (self._source,)
        self.functions = (self._function,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _FlatMapping(self._source.iterate(run), self._function, run)


class _FlatMapping(Stage):
    def __init__(self, source: Traversal, function: Function, run: PipelineRun) -> None:
        super().__init__(source)
        self._function, self._run = function, run
        self._current: MadePipeline | None = None

    def next(self) -> Any:
        while True:
            self._run.check()
            if self._current is None:
                element = self.source.next()
                if element is END:
                    return END
                self._current = MadePipeline(element, self._function, self._run)
            made = self._current.next()
            if made is not END:
                return made
            current, self._current = self._current, None
            current.close()

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        super().close()

    def own_state(self) -> Any:
        return None if self._current is None else self._current.state()

    def restore_own(self, state: Any) -> None:
        if state is not None:
            self._current = MadePipeline.resumed(state, self._function, self._run)


class Interleave(Pipeline):
    """The elements of several pipelines that a function makes, a few of each in turn.

    With ``ahead``, the arguments of :class:`Ahead`, those that are open are read ahead; ``sloppy``
    passes over one that is not ready.
    """

    def __init__(
        self,
        source: Pipeline,
        function: Function,
        cycle: int,
        block: int,
        ahead: tuple[int, int] | None = None,
        sloppy: bool = False,
    ) -> None:
        for name, value in (("cycle_length", cycle), ("block_length", block)):
            if value <= 0:
                raise InvalidArgumentError(None, None, f"{name} must be greater than zero.")
        self._source, self.function = source, function
        self.cycle, self.block, self.ahead, self.sloppy = cycle, block, ahead, sloppy
        self.has_threads = ahead is not None
        self.sources = (self._source,)
        self.functions = (self.function,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Interleaving(self._source.iterate(run), self, run)


class _Interleaving(Stage):
    def __init__(self, source: Traversal, how: Interleave, run: PipelineRun) -> None:
        super().__init__(source)
        self._how, self._run = how, run
        self._ahead = None if how.ahead is None else Ahead(*how.ahead)
        self._open: list[MadePipeline | Exception | None] = [None] * how.cycle
        self._at = self._drawn = 0
        self._ended = self._filled = False

    def _advance(self) -> None:
        self._drawn = 0
        self._at = (self._at + 1) % len(self._open)

    def next(self) -> Any:
        if self._ahead is not None and not self._filled:
            self._fill()
        while not self._ended or any(one is not None for one in self._open):
            self._run.check()
            if self._how.sloppy and self._ahead is not None:
                self._find_ready(self._ahead.arrived)
            current = self._open[self._at]
            if isinstance(current, Exception):
                self._open[self._at] = None
                raise current
            if current is not None:
                made = current.next()
                if made is not END:
                    self._drawn += 1
                    if self._drawn == self._how.block:
                        self._advance()
                    return made
                self._open[self._at] = None
                current.close()
                if self._ahead is not None:
                    self._open_ahead(self._at)
                self._advance()
            elif self._ended:
                self._advance()
            else:
                self._open[self._at] = self._opened()
        return END

    def _opened(self) -> MadePipeline | None:
        element = self.source.next()
        if element is END:
            self._ended = True
            return None
        made = MadePipeline(element, self._how.function, self._run, self._ahead)
        made.start()
        return made

    def _open_ahead(self, place: int) -> None:
        """Opens what will be read in ``place``; an error waits there for its turn."""
        try:
            self._open[place] = None if self._ended else self._opened()
        except Exception as error:
            self._open[place] = error

    def _fill(self) -> None:
        for place, one in enumerate(self._open):
            if one is None:
                self._open_ahead(place)
        self._filled = True

    def _find_ready(self, arrived: threading.Event) -> None:
        """Passes over pipelines whose next element would have to be waited for."""
        while True:
            arrived.clear()
            for _ in self._open:
                current = self._open[self._at]
                if isinstance(current, Exception) or (current is not None and current.is_ready):
                    return
                if current is None and not self._ended:
                    return
                self._advance()
            if all(one is None for one in self._open):
                return
            self._run.check()
            arrived.wait(LOOK_SECONDS)

    def close(self) -> None:
        for one in self._open:
            if isinstance(one, MadePipeline):
                one.close()
        super().close()

    def own_state(self) -> Any:
        opened = [one.state() if isinstance(one, MadePipeline) else one for one in self._open]
        return [opened, self._at, self._drawn, self._ended, self._filled]

    def restore_own(self, state: Any) -> None:
        opened, self._at, self._drawn, self._ended, self._filled = state
        for place, one in enumerate(opened):
            if isinstance(one, list):
                self._open[place] = MadePipeline.resumed(
                    one, self._how.function, self._run, self._ahead
                )
            else:
                self._open[place] = one
