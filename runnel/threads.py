"""Threads that are there when they are needed: as many as have something to do at once.

They are daemons. Those of the standard library's executors are not: the end of a program waits for
them before anything can tell the steps that they run to stop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

_IDLE_SECONDS = 30.0


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Threads:
    """Runs functions on threads, at most so many, which end when they were idle for a while."""

    def __init__(self, name: str, most: int = 1 << 30, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._name = name
        self._most = most
        self._idle_seconds = idle_seconds
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Guards _idle, the threads that wait for something to do and have not been promised it, and
        # _backlog, what has been promised to none: one of the two is always zero.
        self._lock = threading.Lock()
        self._idle = 0
        self._backlog = 0
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
            starts = self._idle == 0 and self._count < self._most
            if starts:
                self._count += 1
            elif self._idle:
                self._idle -= 1
            else:
                self._backlog += 1
        self._waiting.put(function)
        if starts:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        """What becomes of a call of ``function``; it is not made if :meth:`close` comes before."""
        if self._closed:
            raise RuntimeError(f"No more is done by {self._name}")
        future: Future[Any] = Future()

        def call() -> None:
            if self._closed:
                future.cancel()
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function(*args, **more))
            except BaseException as error:  # noqa: BLE001 (told to who asks for the result)
                future.set_exception(error)

        self.run(call)
        return future

    def _work(self) -> None:
        while True:
            try:
                function = self._waiting.get(timeout=self._idle_seconds)
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
                if self._backlog:
                    self._backlog -= 1
                elif self._closed:
                    self._count -= 1
                    return
                else:
                    self._idle += 1

    def close(self) -> None:
        """Lets the threads end that have nothing to do."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, 0
            self._count -= idle
        for _ in range(idle):
            self._waiting.put(None)
