"""Counts what a task has yet to write, because its readers are too slow."""

from __future__ import annotations

import threading

MOST_WAITING = 1 << 26
"""The bytes that may wait before whoever sends more is held up."""


class Backlog:
    """The bytes that wait on all connections of a task."""

    __slots__ = ("bytes", "_lock")

    def __init__(self) -> None:
        # Connections count at once, each under its own lock.
        self._lock = threading.Lock()
        self.bytes = 0

    def add(self, change: int) -> None:
        """Some have begun to wait, or wait no longer."""
        with self._lock:
            self.bytes += change

    @property
    def is_large(self) -> bool:
        """True when nobody should send who cannot wait."""
        return self.bytes > MOST_WAITING
