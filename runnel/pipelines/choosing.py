"""Elements that depend on others before them: grouped, scanned, chosen among several pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
)
from runnel.pipelines.batching import Kept
from runnel.pipelines.flattening import MadePipeline
from runnel.pipelines.pipeline import (
    END,
    Element,
    Function,
    Pipeline,
    PipelineRun,
    Stage,
    Traversal,
)
from runnel.pipelines.sources import scalar


class GroupByWindow(Pipeline):
    """The elements of what a function makes of so many elements of one key."""

    def __init__(self, source: Pipeline, key: Function, made: Function, size: Function) -> None:
        self._source, self._functions = source, (key, made, size)
        self.sources = (self._source,)
        self.functions = self._functions

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Grouping(self._source.iterate(run), *self._functions, run)


class _Grouping(Stage):
    def __init__(
        self, source: Traversal, key: Function, made: Function, size: Function, run: PipelineRun
    ) -> None:
        super().__init__(source)
        self._key, self._made, self._size, self._run = key, made, size, run
        self._groups: dict[int, list[Element]] = {}
        self._sizes: dict[int, int] = {}
        self._current: MadePipeline | None = None
        self._ended = False

    def next(self) -> Any:
        while True:
            self._run.check()
            if self._current is not None:
                made = self._current.next()
                if made is not END:
                    return made
                current, self._current = self._current, None
                current.close()
            elif not self._ended:
                element = self.source.next()
                if element is END:
                    self._ended = True
                else:
                    self._add(element)
            elif self._groups:
                self._begin(min(self._groups))
            else:
                return END

    def _add(self, element: Element) -> None:
        key = int(self._key(element)[0])
        group = self._groups.setdefault(key, [])
        if not group:
            self._sizes[key] = int(self._size([np.int64(key)])[0])
            if self._sizes[key] <= 0:
                raise InvalidArgumentError(
                    None, None, f"Window size must be greater than zero, but got {self._sizes[key]}"
                )
        group.append(element)
        if len(group) == self._sizes[key]:
            self._begin(key)

    def _begin(self, key: int) -> None:
        group = self._groups.pop(key)
        self._current = MadePipeline([np.int64(key), scalar(Kept(group))], self._made, self._run)

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        super().close()

    def own_state(self) -> Any:
        groups = [[key, self._sizes[key], group] for key, group in self._groups.items()]
        current = None if self._current is None else self._current.state()
        return [groups, self._ended, current]

    def restore_own(self, state: Any) -> None:
        groups, self._ended, current = state
        self._groups = {key: group for key, _, group in groups}
        self._sizes = {key: size for key, size, _ in groups}
        if current is not None:
            self._current = MadePipeline.resumed(current, self._made, self._run)


class Scan(Pipeline):
    """What a function of a state and each element makes, beside the next state."""

    def __init__(self, source: Pipeline, state: Element, function: Function) -> None:
        self._source, self._state, self._function = source, state, function
        self.sources = (self._source,)
        self.functions = (self._function,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Scanning(self._source.iterate(run), self._state, self._function)


class _Scanning(Stage):
    def __init__(self, source: Traversal, state: Element, function: Function) -> None:
        super().__init__(source)
        self._state, self._function = state, function

    def next(self) -> Any:
        element = self.source.next()
        if element is END:
            return END
        made = self._function([*self._state, *element])
        count = len(self._state)
        self._state = made[:count]
        return made[count:]

    def own_state(self) -> Any:
        return self._state

    def restore_own(self, state: Any) -> None:
        self._state = state


class TakeWhile(Pipeline):
    """The elements before the first of which a function says false."""

    def __init__(self, source: Pipeline, predicate: Function) -> None:
        self._source, self._predicate = source, predicate
        self.sources = (self._source,)
        self.functions = (self._predicate,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _TakingWhile(self._source.iterate(run), self._predicate)


class _TakingWhile(Stage):
    def __init__(self, source: Traversal, predicate: Function) -> None:
        super().__init__(source)
        self._predicate, self._ended = predicate, False

    def next(self) -> Any:
        if self._ended:
            return END
        element = self.source.next()
        if element is END or not self._predicate(element)[0]:
            self._ended = True
            return END
        return element

    def own_state(self) -> Any:
        return self._ended

    def restore_own(self, state: Any) -> None:
        self._ended = state


class IgnoreErrors(Pipeline):
    """The elements that can be made, without those that fail."""

    def __init__(self, source: Pipeline) -> None:
        self._source = source
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Ignoring(self._source.iterate(run), run)


class _Ignoring(Stage):
    def __init__(self, source: Traversal, run: PipelineRun) -> None:
        super().__init__(source)
        self._run = run

    def next(self) -> Any:
        while True:
            self._run.check()
            try:
                return self.source.next()
            except (CancelledError, DeadlineExceededError):
                raise
            except OpError:
                continue


class Directed(Pipeline):
    """Elements of several pipelines, each of that which another pipeline names.

    One that has ended is passed over, or ends all of it.
    """

    def __init__(self, selector: Pipeline, sources: list[Pipeline], ends_with_one: bool) -> None:
        self._selector, self._sources, self._ends_with_one = selector, sources, ends_with_one
        self.sources = (self._selector, *self._sources)

    def iterate(self, run: PipelineRun) -> Traversal:
        sources = [source.iterate(run) for source in self._sources]
        return _Directing(self._selector.iterate(run), sources, self._ends_with_one, run)


class _Directing(Stage):
    def __init__(
        self, source: Traversal, sources: list[Traversal], ends_with_one: bool, run: PipelineRun
    ) -> None:
        super().__init__(source)
        self._sources: list[Traversal | None] = list(sources)
        self._ends_with_one, self._run = ends_with_one, run

    def next(self) -> Any:
        while any(source is not None for source in self._sources):
            self._run.check()
            choice = self.source.next()
            if choice is END:
                return END
            place = int(choice[0])
            if not 0 <= place < len(self._sources):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Selector index out of range: {place} >= {len(self._sources)}",
                )
            chosen = self._sources[place]
            if chosen is None:
                continue
            element = chosen.next()
            if element is not END:
                return element
            ended = range(len(self._sources)) if self._ends_with_one else [place]
            for one in ended:
                traversal, self._sources[one] = self._sources[one], None
                if traversal is not None:
                    traversal.close()
        return END

    def close(self) -> None:
        for source in self._sources:
            if source is not None:
                source.close()
        super().close()

    def own_state(self) -> Any:
        return [
            [source is None, None if source is None else source.state()] for source in self._sources
        ]

    def restore_own(self, state: Any) -> None:
        for place, ((ended, its), source) in enumerate(zip(state, self._sources, strict=True)):
            if ended:
                self._sources[place] = None
            elif source is not None:
                source.restore(its)
