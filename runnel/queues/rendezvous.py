"""Where the parts of one step meet: one sends a value under a key, another receives it, once.

A receiver that comes first waits; a sender leaves its value and goes on. A value may be *dead*: it
lies on a branch that was not taken, and its consumers must know.
"""

from __future__ import annotations

import threading
from typing import Any

from runnel.graph.errors import InternalError
from runnel.queues.waiter import WAITING, Waiter

DEAD: Any = type("Dead", (), {"__repr__": lambda self: "DEAD"})()
"""A value on a branch that was not taken."""


class Rendezvous:
    """The values of one step that are sent and not yet received, and those who wait for some.

    ``error`` is the first cause for which the step has failed, once it has.
    """

    def __init__(self) -> None:
        # Held while a value or a waiter is put down or taken up, never while one waits.
        self._lock = threading.Lock()
        self._values: dict[str, Any] = {}
        self._waiters: dict[str, Waiter] = {}
        self._keys: dict[Waiter, str] = {}
        self.error: Exception | None = None
        self._lost: dict[str, Exception] = {}
        """Tasks that cannot be reached any more, and why: what they had sent may be lost."""

    def send(self, key: str, value: Any, to: str) -> None:
        """Hands ``value``, or ``DEAD``, to who waits for ``key`` or will ask for it; never waits.

        A tuple is several values under one key, which are received together.
        ``to`` names the device that it is for; here all devices meet.
        """
        self.put(key, value)

    def flush(self) -> None:
        """Lets what was sent leave, where it has a way to go."""

    def put(self, key: str, sent: Any) -> None:
        """Leaves a value, or ``DEAD``, for who receives under ``key``."""
        with self._lock:
            if self.error is not None:
                raise self.error
            waiter = self._waiters.pop(key, None)
            if waiter is not None:
                del self._keys[waiter]
                waiter.complete(lambda: sent if type(sent) is tuple else (sent,))
            elif key in self._values:
                raise InternalError(None, None, f"Something was sent twice under the key {key!r}")
            else:
                self._values[key] = sent

    def recv(self, key: str, waiter: Waiter) -> Any:
        """What was sent under ``key`` (``DEAD`` if it is dead), which is then gone; or it waits."""
        with self._lock:
            if self.error is not None:
                raise self.error
            if key in self._values:
                found = self._values.pop(key)
                return found if type(found) is tuple else (found,)
            if self._lost and (lost := self._loss_of(key)) is not None:
                raise lost
            if key in self._waiters:
                raise InternalError(None, None, f"Two operations receive under the key {key!r}")
            self._waiters[key] = waiter
            self._keys[waiter] = key
        waiter.place = self
        return WAITING

    def cancel(self, waiter: Waiter) -> bool:
        """Forgets ``waiter``; False if it has been told its result already."""
        with self._lock:
            key = self._keys.pop(waiter, None)
            if key is None:
                return False
            del self._waiters[key]
            return True

    def lose(self, task: str, error: Exception) -> None:
        """Fails those who wait, or come to wait, for what ``task`` sends; the rest goes on."""
        with self._lock:
            self._lost[f"{task}/"] = error
            for key in [key for key in self._waiters if self._loss_of(key) is not None]:
                waiter = self._waiters.pop(key)
                del self._keys[waiter]
                waiter.fail(error)

    def _loss_of(self, key: str) -> Exception | None:
        """Why who sends under ``key`` cannot be reached; a key begins with the sender's device."""
        return next((e for task, e in self._lost.items() if key.startswith(task)), None)

    def abort(self, error: Exception) -> None:
        """Fails all that wait and all that come later, with the first error that it was given."""
        with self._lock:
            if self.error is not None:
                return
            self.error = error
            self._values.clear()
            self._waiters.clear()
            while self._keys:
                self._keys.popitem()[0].fail(error)
