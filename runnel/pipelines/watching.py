"""Where the time of input goes: how long steps wait for elements, and which stage takes it.

How long steps wait is always counted; what each stage takes, of traversals that begin while someone
watches. A stage's time is its own, without what it waits for another stage to make.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
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

    def add_wait(self, seconds: float) -> None:
        """A step has waited."""
        with self._lock:
            self.waited += seconds

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
