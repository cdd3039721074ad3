"""Waiters for tests: one that remembers what it was told, one that a thread can block on."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from runnel.queues.waiter import WAITING, Waiter


class Told(Waiter):
    """Remembers its result; telling it twice is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome: Any = None
        self.event = threading.Event()

    def complete(self, make: Any) -> None:
        assert self.outcome is None, "told twice"
        self.outcome = ("done", make)
        self.event.set()

    def fail(self, error: Exception) -> None:
        assert self.outcome is None, "told twice"
        self.outcome = ("failed", type(error))
        self.event.set()

    def result(self) -> Any:
        """("done", plain outputs), ("failed", type of the error), or None while it waits."""
        if self.outcome is not None and self.outcome[0] == "done" and callable(self.outcome[1]):
            self.outcome = ("done", plain(self.outcome[1]()))
        return self.outcome


def start(operation: Any, *args: Any, **named: Any) -> Told:
    """Begins an operation; what it returns or raises at once is told too."""
    waiter = Told()
    try:
        outputs = operation(*args, waiter=waiter, **named)
    except Exception as error:  # noqa: BLE001 (compared by type)
        waiter.fail(error)
    else:
        if outputs is not WAITING:
            waiter.complete(lambda: outputs)
    return waiter


def plain(outputs: Any) -> tuple[Any, ...]:
    """Arrays as lists, for comparing."""
    return tuple(np.asarray(value).tolist() for value in outputs)
