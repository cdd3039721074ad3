"""Where the time of input goes: how long steps wait for elements, and which stage takes it.

How long steps wait, for datasets, queues and readers, is always counted; what each stage takes, of
traversals that begin while someone watches. A stage's time is its own, without what it waits for
another stage to make. A queue or a reader is a stage that takes what steps wait for it.

Threads that fill queues wait for input on nobody's account: what matters is whether the queues that
they fill run empty.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any


class InputTimes:
    """The times of the input of this process, in seconds."""

    def __init__(self) -> None:
        self.waited = 0.0
        """How long steps have waited for elements."""
        self.stages: dict[str, float] = {}
        """What each stage has taken, by what people call it."""
        self._watchers = 0
        # Guards the others: steps and the threads of pipelines write them.
        self._lock = threading.Lock()
        self._inner = threading.local()
        self._fillers: set[int] = set()
        """Threads that fill queues; changed by single operations of a set only."""

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Within, this thread makes input for others: what it waits for does not count."""
        thread = threading.get_ident()
        self._fillers.add(thread)
        try:
            yield
        finally:
            self._fillers.discard(thread)

    @property
    def is_filling(self) -> bool:
        """Whether this thread makes input for others."""
        return threading.get_ident() in self._fillers

    @property
    def is_watched(self) -> bool:
        return self._watchers > 0

    def watch(self) -> None:
        """Has traversals that begin from now on be timed, until :meth:`leave`."""
        with self._lock:
            self._watchers += 1

    def leave(self) -> None:
        """Undoes one :meth:`watch`."""
        with self._lock:
            self._watchers -= 1

    def add_wait(self, seconds: float, stage: str | None = None) -> None:
        """A step of this thread has waited, for ``stage`` if that does not time itself."""
        if self.is_filling:
            return
        with self._lock:
            self.waited += seconds
            if stage is not None:
                self.stages[stage] = self.stages.get(stage, 0.0) + seconds

    def timed(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call``, whose time is counted for ``stage``."""
        inner = self._inner

        def counted(*args: Any) -> Any:
            before = getattr(inner, "seconds", 0.0)
            inner.seconds = 0.0
            start = time.perf_counter()
            try:
                return call(*args)
            finally:
                taken = time.perf_counter() - start
                with self._lock:
                    self.stages[stage] = self.stages.get(stage, 0.0) + taken - inner.seconds
                inner.seconds = before + taken

        return counted

    def slowest(self, since: dict[str, float] | None = None) -> list[tuple[str, float]]:
        """The stages and what they have taken, since ``since``, the slowest first."""
        with self._lock:
            found = {
                name: seconds - (since or {}).get(name, 0.0)
                for name, seconds in self.stages.items()
            }
        return sorted(found.items(), key=lambda one: -one[1])


INPUT_TIMES = InputTimes()


class InputInterval:
    """The times of input between calls."""

    def __init__(self) -> None:
        self._waited, self._stages = INPUT_TIMES.waited, dict(INPUT_TIMES.stages)

    def seen(self) -> tuple[float, list[tuple[str, float]]]:
        """How long steps waited since, and what stages took, the slowest first."""
        stages = [one for one in INPUT_TIMES.slowest(self._stages) if one[1] > 0]
        return INPUT_TIMES.waited - self._waited, stages

    def share(self, elapsed: float) -> tuple[float, str | None]:
        """The share of ``elapsed`` seconds that steps waited since, and the slowest stage."""
        waited, stages = self.seen()
        self._waited, self._stages = INPUT_TIMES.waited, dict(INPUT_TIMES.stages)
        slowest = stages[0][0] if stages else None
        return min(1.0, waited / elapsed) if elapsed else 0.0, slowest
