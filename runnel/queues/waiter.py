"""A waiter stands for an operation that cannot go on yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

WAITING: Any = type("Waiting", (), {"__repr__": lambda self: "WAITING"})()
"""What an operation returns when its waiter will be told the result later."""

Outputs = Sequence[Any]


class Place(Protocol):
    """Something with a list of waiters."""

    def cancel(self, waiter: Waiter) -> bool:
        """Forgets ``waiter``; False if it has been told its result already."""


class Waiter:
    """Told the result of an operation, once, from whichever thread brings it about.

    ``complete`` and ``fail`` are called while a lock is held: they only take note. ``place`` is
    where the waiter stands; the state machine that keeps it sets it.
    """

    __slots__ = ("place",)

    def __init__(self) -> None:
        self.place: Place | None = None

    def complete(self, make: Callable[[], Outputs]) -> None:
        """The operation succeeded; ``make`` gives its outputs, and is called by who waited."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        """The operation failed."""
        raise NotImplementedError
