"""Tries waiting operations again, in order of arrival, whenever something has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from runnel.queues.waiter import WAITING, Outputs, Waiter

Attempt = Callable[[], Outputs | None]
"""Makes an operation if it can be made now: its outputs, or None; it may raise."""


class Attempts:
    """One lock and the operations that wait under it, in order of arrival.

    Each is an attempt, tried again after every change. In a line only the first is tried: the
    others wait for it too. Those without a line (None) do not hold each other up.
    """

    def __init__(self) -> None:
        # Held while an attempt is made, never while one waits.
        self._lock = threading.Lock()
        self._lines: dict[str | None, OrderedDict[Waiter, Attempt]] = {}
        self._gone: Exception | None = None

    def make(self, attempt: Attempt, waiter: Waiter, line: str | None) -> Any:
        """Makes an operation, or leaves it in ``line`` to be tried later."""
        with self._lock:
            if self._gone is not None:  # nobody would come to change anything
                raise self._gone
            waiting = self._lines.setdefault(line, OrderedDict())
            if line is None or not waiting:
                outputs = attempt()
                if outputs is not None:
                    self._try_again()
                    return outputs
            waiting[waiter] = attempt
        waiter.place = self
        return WAITING

    def change(self, change: Callable[[], Any]) -> Any:
        """Makes a change that never waits; others may go on after it."""
        with self._lock:
            result = change()
            self._try_again()
            return result

    def _try_again(self) -> None:
        """Makes what can be made now, until nothing more can be."""
        progress = True
        while progress:
            progress = False
            for line, waiting in self._lines.items():
                for waiter in list(waiting):
                    try:
                        outputs = waiting[waiter]()
                    except Exception as error:  # noqa: BLE001 (told to who waits)
                        del waiting[waiter]
                        waiter.fail(error)
                        progress = True
                        continue
                    if outputs is not None:
                        del waiting[waiter]
                        made = outputs
                        waiter.complete(lambda made=made: made)  # type: ignore[misc]
                        progress = True
                    elif line is not None:
                        break

    def cancel(self, waiter: Waiter) -> bool:
        """Forgets ``waiter``; False if it has been told its result already."""
        with self._lock:
            for waiting in self._lines.values():
                if waiting.pop(waiter, None) is not None:
                    self._try_again()
                    return True
            return False

    def abandon(self, error: Exception) -> None:
        """Fails everyone who waits, and who comes later."""
        with self._lock:
            self._gone = error
            for waiting in self._lines.values():
                while waiting:
                    waiting.popitem(last=False)[0].fail(error)
