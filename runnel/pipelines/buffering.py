"""Elements that wait: shuffled, kept for the next time, made ahead of need."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.pipelines.batching import Kept
from runnel.pipelines.mapping import LOOK_SECONDS
from runnel.pipelines.pipeline import END, Element, Pipeline, PipelineRun, Stage, Traversal

Words = Callable[[], int]
"""A source of 32 random bits at a time."""


class Shuffle(Pipeline):
    """Elements in a random order: each is drawn from a buffer of so many.

    ``seeds()`` gives what each traversal draws with.
    """

    def __init__(self, source: Pipeline, size: int, seeds: Callable[[], Words]) -> None:
        if size <= 0:
            raise InvalidArgumentError(None, None, "buffer_size must be greater than zero.")
        self._source, self._size, self._seeds = source, size, seeds

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Shuffling(self._source.iterate(run), self._size, self._seeds(), run)


class _Shuffling(Stage):
    def __init__(self, source: Traversal, size: int, words: Words, run: PipelineRun) -> None:
        super().__init__(source)
        self._size, self._words, self._run = size, words, run
        self._buffer: list[Any] = []
        # As TensorFlow's, a ring: a drawn element gives its place to the one that waits longest.
        self._start = self._count = 0
        self._ended = False

    def next(self) -> Any:
        while not self._ended and self._count < self._size:
            self._run.check()
            element = self.source.next()
            if element is END:
                self._ended = True
            else:
                self._put(element)
        if not self._count:
            return END
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


class Cache(Pipeline):
    """Elements that are made once: when all have been, they come out of memory."""

    def __init__(self, source: Pipeline) -> None:
        self._source = source
        self._kept: list[Element] | None = None
        # Guards _kept.
        self._lock = threading.Lock()

    def iterate(self, run: PipelineRun) -> Traversal:
        with self._lock:
            if self._kept is not None:
                return Kept(self._kept).iterate(run)
        return _Caching(self._source.iterate(run), self._keep)

    def _keep(self, elements: list[Element]) -> None:
        with self._lock:
            self._kept = elements


class _Caching(Stage):
    def __init__(self, source: Traversal, keep: Callable[[list[Element]], None]) -> None:
        super().__init__(source)
        self._elements: list[Element] = []
        self._keep = keep

    def next(self) -> Any:
        element = self.source.next()
        if element is END:
            self._keep(self._elements)
        else:
            for value in element:
                if isinstance(value, np.ndarray):
                    value.flags.writeable = False  # whoever gets it, gets a copy
            self._elements.append(element)
        return element


class Prefetch(Pipeline):
    """Elements that a thread of the traversal makes ahead, as many as its buffer holds."""

    def __init__(self, source: Pipeline, size: int) -> None:
        self._source, self._size = source, size

    def iterate(self, run: PipelineRun) -> Traversal:
        if not self._size:
            return self._source.iterate(run)
        return _Prefetching(self._source, self._size, run)


class _Stopped(Exception):
    """The traversal was closed while its thread was making an element."""


class _Prefetching(Traversal):
    def __init__(self, source: Pipeline, size: int, run: PipelineRun) -> None:
        self._size, self._run = size, run
        self._ready: deque[tuple[Any, Exception | None]] = deque()
        # Guards _ready and _closed, and tells when they change.
        self._changed = threading.Condition()
        self._closed = self._started = self._ended = False
        self._source = source.iterate(PipelineRun(self._require_open))

    def _require_open(self) -> None:
        if self._closed:
            raise _Stopped

    def next(self) -> Any:
        if self._ended:
            return END
        if not self._started:
            self._started = True
            threading.Thread(None, self._work, "runnel-data-prefetch", daemon=True).start()
        with self._changed:
            while not self._ready:
                self._run.check()
                if self._closed:
                    return END
                self._changed.wait(LOOK_SECONDS)
            element, error = self._ready.popleft()
            self._changed.notify_all()
        if error is not None:
            raise error
        self._ended = element is END
        return element

    def _work(self) -> None:
        """What the thread does: fills the buffer until there is nothing more, or it is closed."""
        try:
            while True:
                element: Any = None
                error: Exception | None = None
                try:
                    element = self._source.next()
                except Exception as raised:
                    error = raised
                with self._changed:
                    while len(self._ready) >= self._size and not self._closed:
                        self._changed.wait()
                    if self._closed:
                        return
                    self._ready.append((element, error))
                    self._changed.notify_all()
                if element is END:
                    return
        finally:
            self._source.close()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()
        if not self._started:
            self._source.close()
