"""A gate that holds threads back between their steps."""

from __future__ import annotations

import threading


class StepGate:
    """Threads make each step inside; while it is held, none begins another.

    Example:
        >>> with gate:  # waits while somebody holds the gate
        ...     sess.run(enqueue)
    """

    def __init__(self) -> None:
        # Guards both counts; notified when a step ends that somebody waits for, and at release.
        self._changed = threading.Condition()
        self._inside = 0
        self._holds = 0

    def __enter__(self) -> None:
        with self._changed:
            while self._holds:
                self._changed.wait()  # for no longer than a checkpoint takes
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._inside -= 1
            if self._holds:
                self._changed.notify_all()

    def hold(self) -> None:
        """Lets no step begin, until as many releases have come."""
        with self._changed:
            self._holds += 1

    def release(self) -> None:
        """Takes back a hold."""
        with self._changed:
            self._holds -= 1
            self._changed.notify_all()

    @property
    def inside(self) -> int:
        """How many steps are being made."""
        return self._inside

    def wait_for_end(self, timeout: float) -> None:
        """Waits until no step is being made, or ``timeout`` seconds have passed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._inside, timeout)
