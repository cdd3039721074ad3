"""Waits until nobody reads an array that is to be changed in place."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from runnel.runtime.state.step_context import LOOK_SECONDS
from runnel.runtime.state.task_state import TaskState

COPIED_PER_SECOND = 4e9
"""The bytes of memory that are copied in a second, roughly."""


class ReaderWait:
    """A wait for interpreted segments that read, about as long as a copy of the array would take.

    ``look`` is called meanwhile, and raises where the step is to stop::

        wait = ReaderWait(task, look)
        try:
            while True:
                with task.lock:  # which those take who begin to read
                    if nobody_reads() or wait.is_over(copy_seconds):
                        ...
                        return
                    wait.begin()
                wait.sleep()
        finally:
            wait.end()
    """

    __slots__ = ("_task", "_look", "_until", "_ended")

    def __init__(self, task: TaskState, look: Callable[[], None]) -> None:
        self._task = task
        self._look = look
        self._until = 0.0
        self._ended: threading.Event | None = None

    def begin(self) -> None:
        """Asks to be told when a reader ends; called under the task's lock."""
        if self._ended is None:
            self._ended = threading.Event()
        self._ended.clear()
        self._task.await_readers.add(self._ended)

    def is_over(self, seconds: float) -> bool:
        """Whether ``seconds`` have passed since this was first asked."""
        now = time.monotonic()
        if not self._until:
            self._until = now + seconds
        return now >= self._until

    def sleep(self) -> None:
        """Sleeps until a reader has ended, or it is time to ask again."""
        assert self._ended is not None
        self._ended.wait(max(0.0, min(self._until - time.monotonic(), LOOK_SECONDS)))
        self._look()

    def end(self) -> None:
        """Is to be told no more."""
        if self._ended is not None:
            self._task.await_readers.discard(self._ended)
