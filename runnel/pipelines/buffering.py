"""Elements that wait: shuffled, kept for the next time, made ahead of need."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.pipelines.mapping import LOOK_SECONDS
from runnel.pipelines.pipeline import (
    END,
    Block,
    Element,
    Indexed,
    Pipeline,
    PipelineRun,
    SameNumber,
    Stage,
    Traversal,
    columns_of,
    elements_of,
    rows_of,
)

_AT_ONCE = 128
"""How many elements are taken from the source together, at most."""


class Words(Protocol):
    """A source of 32 random bits at a time."""

    def __call__(self) -> int: ...

    def state(self) -> Any:
        """Where it stands."""


class Seeds(Protocol):
    """What the traversals of a shuffle draw with: other numbers for each, or the same."""

    def __call__(self) -> Words: ...

    def resumed(self, state: Any) -> Words:
        """The numbers that follow where others stood."""

    def joined(self) -> Seeds:
        """Seeds whose traversals, one after the other, draw from one stream."""

    def state(self) -> Any:
        """Where it stands."""

    def restore(self, state: Any) -> None:
        """Goes on where another stood."""


def _nothing() -> None:
    """What is done at the end of most things."""


class Shuffle(SameNumber):
    """Elements in a random order: each is drawn from a buffer of so many.

    One that ``goes_on`` is followed by itself: its seeds are those of a repetition.
    """

    def __init__(self, source: Pipeline, size: int, seeds: Seeds, goes_on: bool = False) -> None:
        if size <= 0:
            raise InvalidArgumentError(None, None, "buffer_size must be greater than zero.")
        self._source, self._size, self._seeds = source, size, seeds
        self._at_end = _nothing if goes_on else source.draw_unused
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        source = self._source.iterate(run)
        if isinstance(source, Indexed) and source.rows_at is not None:
            return _ShufflingNumbers(source, source.rows_at, self._size, self._seeds, run)
        return _Shuffling(source, self._size, self._seeds, run, self._at_end)

    def as_repeated(self) -> Pipeline:
        return Shuffle(self._source, self._size, self._seeds.joined(), goes_on=True)

    def draw_unused(self) -> None:
        self._seeds()

    def state(self) -> Any:
        return self._seeds.state()

    def restore(self, state: Any) -> None:
        self._seeds.restore(state)


class _Shuffling(Stage):
    def __init__(
        self,
        source: Traversal,
        size: int,
        seeds: Seeds,
        run: PipelineRun,
        at_end: Callable[[], None],
    ) -> None:
        super().__init__(source)
        self._size, self._seeds, self._run, self._at_end = size, seeds, run, at_end
        self._words = seeds()
        self._buffer: list[Any] = []
        # As TensorFlow's, a ring: a drawn element gives its place to the one that waits longest.
        self._start = self._count = 0
        self._ended = False
        self._waiting: deque[Element] = deque()
        """Elements that were taken from the source, for which there is no room yet."""
        self._error: Exception | None = None
        """What the source raised in place of the element behind them."""

    def next(self) -> Any:
        while not self._ended and self._count < self._size:
            self._run.check()
            element = self._taken()
            if element is END:
                self._end()
            else:
                self._put(element)
        return self._drawn() if self._count else END

    def _taken(self) -> Any:
        if self._waiting:
            return self._waiting.popleft()
        self._raise_error()
        return self.source.next()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    @property
    def has_blocks(self) -> bool:  # type: ignore[override]
        # Rows of a tensor are better kept as views of it than copied.
        return self.source.has_calls

    @property
    def has_calls(self) -> bool:  # type: ignore[override]
        return self.source.has_calls

    def block(self, most: int) -> Block | None:
        given: list[Element] = []
        while len(given) < most:
            try:
                self._fill(most - len(given))
            except Exception as error:
                if not given:
                    raise
                self._error = error
                break
            if not self._count:
                break
            given.append(self._drawn())
        return columns_of(given) if given else None

    def _fill(self, wanted: int) -> None:
        """Fills the buffer; ``wanted`` elements will be drawn, and replaced but for the last."""
        waiting = self._waiting
        while not self._ended and self._count < self._size:
            self._run.check()
            if not waiting:
                self._raise_error()
                block = self.source.block(min(self._size - self._count + wanted - 1, _AT_ONCE))
                if block is None:
                    self._end()
                    break
                waiting.extend(elements_of(block))
            self._put(waiting.popleft())

    def _end(self) -> None:
        self._ended = True
        self._at_end()

    def _drawn(self) -> Element:
        """Takes a random element out of the buffer."""
        place = (self._start + self._words() % self._count) % self._size
        first = self._start % self._size
        element, self._buffer[place] = self._buffer[place], self._buffer[first]
        self._buffer[first] = None
        self._start += 1
        self._count -= 1
        return element

    def _put(self, element: Element) -> None:
        place = (self._start + self._count) % self._size
        if place < len(self._buffer):
            self._buffer[place] = element
        else:
            self._buffer.append(element)
        self._count += 1

    def own_state(self) -> Any:
        ahead = [list(self._waiting), self._error]
        return [self._buffer, self._start, self._count, self._ended, self._words.state(), ahead]

    def restore_own(self, state: Any) -> None:
        self._buffer, self._start, self._count, self._ended, words, *ahead = state
        self._words = self._seeds.resumed(words)
        for waiting, self._error in ahead:
            self._waiting.extend(waiting)


class _ShufflingNumbers(_Shuffling):
    """Shuffles the numbers of elements, which are made when they are drawn, many at once."""

    has_blocks = True

    def __init__(
        self,
        source: Indexed,
        rows_at: Callable[[list[int]], Block],
        size: int,
        seeds: Seeds,
        run: PipelineRun,
    ) -> None:
        super().__init__(source, size, seeds, run, _nothing)
        self._numbers, self._rows_at = source.numbers, rows_at

    def next(self) -> Any:
        block = self.block(1)
        return END if block is None else [rows_of(column)[0] for column in block]

    def block(self, most: int) -> Block | None:
        self._run.check()
        numbers = self._drawn_numbers(most)
        return self._rows_at(numbers) if numbers else None

    def _drawn_numbers(self, most: int) -> list[int]:
        """What :meth:`_put` and :meth:`_drawn` do in turn, without a call for each element."""
        buffer, size, words = self._buffer, self._size, self._words
        start, count = self._start, self._count
        # One for each that will be drawn but the last: that place is filled the next time.
        coming = list(self._numbers(size - count + most - 1))
        self._ended = self._ended or len(coming) < size - count + most - 1
        coming.reverse()
        given: list[int] = []
        while len(given) < most:
            while coming and count < size:
                place = (start + count) % size
                if place < len(buffer):
                    buffer[place] = coming.pop()
                else:
                    buffer.append(coming.pop())
                count += 1
            if not count:
                break
            place, first = (start + words() % count) % size, start % size
            given.append(buffer[place])
            buffer[place] = buffer[first]
            start += 1
            count -= 1
        self._start, self._count = start, count
        return given


class Cache(SameNumber):
    """Elements that are made once: when all have been, they come out of memory."""

    def __init__(self, source: Pipeline) -> None:
        self._source = source
        self.kept: list[Element] | None = None
        """All elements; set once, when all have been made."""
        self.sources = (self._source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Caching(self, self._source, run)

    def state(self) -> Any:
        return self.kept

    def restore(self, state: Any) -> None:
        self.kept = state


class _Caching(Traversal):
    """Makes and keeps elements; one that begins when all are kept gives those."""

    def __init__(self, cache: Cache, source: Pipeline, run: PipelineRun) -> None:
        self._cache = cache
        self._place = 0
        self._elements: list[Element] = []
        self._source = None if cache.kept is not None else source.iterate(run)

    def next(self) -> Any:
        if self._source is None:
            kept = self._cache.kept or []
            if self._place >= len(kept):
                return END
            self._place += 1
            return kept[self._place - 1]
        element = self._source.next()
        if element is END:
            self._cache.kept = self._elements
        else:
            for value in element:
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False  # whoever gets it, gets a copy
            self._elements.append(element)
        return element

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    def state(self) -> Any:
        if self._source is None:
            return [self._place, None, None]
        return [0, self._elements, self._source.state()]

    def restore(self, state: Any) -> None:
        self._place, elements, source = state
        if elements is None:
            self.close()
            self._source = None
        elif self._source is not None:
            self._elements = elements
            self._source.restore(source)


class Prefetch(SameNumber):
    """Elements that a thread of the traversal makes ahead, as many as its buffer holds.

    With ``permits`` the thread makes an element only while it has one of them; ``arrived`` is set
    when an element is ready. Under ``name`` it is recorded how full the buffer is.
    """

    def __init__(
        self,
        source: Pipeline,
        size: int,
        permits: threading.Semaphore | None = None,
        arrived: threading.Event | None = None,
        name: str = "",
    ) -> None:
        self.source, self.size, self.name = source, size, name
        self.waits = self.has_threads = size > 0
        self.permits, self.arrived = permits, arrived
        self.sources = (self.source,)

    def iterate(self, run: PipelineRun) -> Traversal:
        return Prefetching(self, run) if self.size else self.source.iterate(run)

    def as_repeated(self) -> Pipeline:
        return self if self.size else self.source.as_repeated()


class _Stopped(Exception):
    """The traversal was closed while its thread was making an element."""


class Prefetching(Traversal):
    """A traversal whose elements a thread makes, which begins with :meth:`start` or ``next``."""

    def __init__(self, how: Prefetch, run: PipelineRun) -> None:
        self._how, self._run = how, run
        self._ready: deque[tuple[Any, Exception | None]] = deque()
        # Guards _ready and _closed, and tells when they change.
        self._changed = threading.Condition()
        # Held by the thread while it makes an element, until that is in _ready.
        self._making = threading.Lock()
        self._closed = self._started = self._ended = False
        self._source = how.source.iterate(PipelineRun(self._require_open, run))

    def _require_open(self) -> None:
        if self._closed:
            raise _Stopped

    @property
    def is_ready(self) -> bool:
        """Whether the next element, or the end, is there."""
        return bool(self._ready) or self._ended or self._closed

    def start(self) -> None:
        """Has the thread begin."""
        if not self._started:
            self._started = True
            threading.Thread(None, self._work, "runnel-data-prefetch", daemon=True).start()

    def next(self) -> Any:
        if self._ended:
            return END
        self.start()
        with self._changed:
            while not self._ready:
                self._run.check()
                if self._closed:
                    return END
                self._changed.wait(LOOK_SECONDS)
            ready = len(self._ready)
            element, error = self._ready.popleft()
            self._changed.notify_all()
        if error is not None:
            raise error
        self._ended = element is END
        name, size = self._how.name, self._how.size
        if self._run.record is not None and name and not self._ended:
            self._run.record.samples(f"{name}::buffer_utilization", [ready / size])
            self._run.record.scalar(f"{name}::buffer_size", ready)
            self._run.record.scalar(f"{name}::buffer_capacity", size)
        return element

    def _work(self) -> None:
        """What the thread does: fills the buffer until there is nothing more, or it is closed."""
        try:
            while self._has_room() and self._make_one():
                pass
        finally:
            self._source.close()

    def _has_room(self) -> bool:
        """Waits for room in the buffer; False when it is closed."""
        with self._changed:
            while len(self._ready) >= self._how.size and not self._closed:
                self._changed.wait()
            return not self._closed

    def _make_one(self) -> bool:
        """Puts the next element into the buffer; False when there is none, or it is closed."""
        element: Any = None
        error: Exception | None = None
        with self._how.permits or nullcontext(), self._making:
            if self._ready and self._ready[-1][0] is END:  # restored at the end
                return False
            try:
                element = self._source.next()
            except Exception as raised:
                error = raised
            with self._changed:
                if self._closed:
                    return False
                self._ready.append((element, error))
                self._changed.notify_all()
        if self._how.arrived is not None:
            self._how.arrived.set()
        return element is not END

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()
        if not self._started:
            self._source.close()

    def state(self) -> Any:
        while not self._making.acquire(timeout=LOOK_SECONDS):
            self._run.check()
        try:
            ready = [None if element is END else error or element for element, error in self._ready]
            return [ready, self._ended, self._source.state()]
        finally:
            self._making.release()

    def restore(self, state: Any) -> None:
        ready, self._ended, source = state
        for one in ready:
            if isinstance(one, Exception):
                self._ready.append((None, one))
            else:
                self._ready.append((END if one is None else one, None))
        self._source.restore(source)
