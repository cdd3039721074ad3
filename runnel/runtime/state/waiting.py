"""Waiting: what one running step waits for, and the steps of a session that wait.

The thread that called ``run`` does all the work of its step and sleeps while the step can only
wait. Whoever makes a result possible, on whichever thread, takes note of it and wakes the sleeper.
So there is no thread for each thing that is waited for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from runnel.graph import errors
from runnel.passes.program.program import Node
from runnel.queues.waiter import Outputs, Waiter
from runnel.runtime.state.resources import Resources


class NodeWaiter(Waiter):
    """An operation of a running step; ``where`` is what its executor needs to go on with it."""

    __slots__ = ("_step", "node", "where", "made", "error")

    def __init__(self, step: StepWaits, node: Node, where: Any) -> None:
        self.place = None
        self._step = step
        self.node = node
        self.where = where
        self.made: Callable[[], Outputs] | None = None
        self.error: Exception | None = None

    @property
    def resources(self) -> Resources:
        """What the session's steps share, by name."""
        return self._step.session.resources

    def complete(self, make: Callable[[], Outputs]) -> None:
        self.made = make
        self._step.arrived(self)

    def fail(self, error: Exception) -> None:
        self.error = error
        self._step.arrived(self)


class StepWaits:
    """What one running step waits for."""

    __slots__ = ("session", "outstanding", "_arrived", "_wake", "_cancelled")

    def __init__(self, session: WaitingSteps) -> None:
        self.session = session
        self.outstanding: dict[NodeWaiter, None] = {}
        """Operations without a result, in the order in which they began to wait."""
        self._arrived: deque[NodeWaiter] = deque()
        self._wake: Any = None
        self._cancelled: str | None = None

    # From any thread ------------------------------------------------------------------------

    def arrived(self, waiter: NodeWaiter) -> None:
        """Takes note of a result."""
        self._arrived.append(waiter)
        self._rouse()

    def cancel(self, why: str) -> None:
        """Ends the step: it fails with a CancelledError that says ``why``."""
        self._cancelled = why
        self._rouse()

    def _rouse(self) -> None:
        # The order matters: the sleeper shows its lock first and then looks for results; who
        # brings one does it the other way around. So one of them sees the other.
        wake = self._wake
        if wake is not None and wake.locked():
            with contextlib.suppress(RuntimeError):  # someone else has just done it
                wake.release()

    # From the step's thread -----------------------------------------------------------------

    def next(self, deadline: float | None) -> NodeWaiter:
        """The next operation that has a result; sleeps until there is one."""
        if not self._arrived:
            self._sleep(deadline)
        waiter = self._arrived.popleft()
        self.outstanding.pop(waiter, None)
        return waiter

    def _sleep(self, deadline: float | None) -> None:
        if self._wake is None:
            wake = threading.Lock()
            wake.acquire()
            self._wake = wake
        wake = self._wake
        self.session.add(self)
        try:
            while not self._arrived:
                if self._cancelled is not None:
                    raise errors.CancelledError(
                        None, self._first().op, f"{self._what()} was cancelled: {self._cancelled}"
                    )
                if deadline is None:
                    wake.acquire()
                elif not wake.acquire(timeout=max(deadline - time.monotonic(), 0)):
                    if not self._arrived:
                        raise errors.DeadlineExceededError(
                            None,
                            self._first().op,
                            f"The step ran out of time while {self._what()} was waiting. "
                            "RunOptions.timeout_in_ms, or ConfigProto.operation_timeout_in_ms for "
                            "every step of a session, sets the limit",
                        )
        finally:
            self.session.remove(self)

    def _first(self) -> Node:
        return next(iter(self.outstanding)).node

    def _what(self) -> str:
        count = len(self.outstanding)
        others = f" (and {count - 1} more)" if count > 1 else ""
        return f"{self._first().op.name!r}{others}"

    def end(self) -> None:
        """Withdraws the operations that still wait; the step has failed."""
        for waiter in self.outstanding:
            if waiter.place is not None:
                waiter.place.cancel(waiter)
        self.outstanding.clear()


class WaitingSteps:
    """The steps of a session that sleep, and the resources that steps share."""

    def __init__(self) -> None:
        self.resources = Resources()
        # Guards _asleep and _closed: closing the session misses no step.
        self._lock = threading.Lock()
        self._asleep: set[StepWaits] = set()
        self._closed: str | None = None

    def add(self, step: StepWaits) -> None:
        """Notes that ``step`` is about to sleep; it is cancelled if the session has ended."""
        with self._lock:
            self._asleep.add(step)
            closed = self._closed
        if closed is not None:
            step.cancel(closed)

    def remove(self, step: StepWaits) -> None:
        with self._lock:
            self._asleep.discard(step)

    def close(self, why: str) -> None:
        """Cancels every step that waits or is about to."""
        with self._lock:
            self._closed = why
            asleep = list(self._asleep)
        for step in asleep:
            step.cancel(why)
        self.resources.clear(None, errors.CancelledError(None, None, why))
