"""Threads that are there when they are needed: as many as have something to do at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

_IDLE_SECONDS = 30.0


class Threads:
    """Runs functions on threads, which end when they have been idle for a while."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Guards _idle: the threads that wait for something to do and have not been promised it.
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0
        self._closed = False

    @property
    def busy(self) -> int:
        """How many threads have something to do."""
        with self._lock:
            return self._count - self._idle

    def run(self, function: Callable[[], None]) -> None:
        """Has a thread call ``function``, soon; it must not raise."""
        with self._lock:
            starts = self._idle == 0
            if starts:
                self._count += 1
            else:
                self._idle -= 1
        self._waiting.put(function)
        if starts:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                function = self._waiting.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._idle == 0:  # it has just been promised something
                        continue
                    self._idle -= 1
                    self._count -= 1
                return
            if function is None:
                return
            function()
            del function
            with self._lock:
                if self._closed:
                    self._count -= 1
                    return
                self._idle += 1

    def close(self) -> None:
        """Lets the threads end that have nothing to do."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, 0
            self._count -= idle
        for _ in range(idle):
            self._waiting.put(None)
