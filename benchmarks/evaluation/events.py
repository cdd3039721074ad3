"""A discrete-event engine: processes that use resources, and queues between them (pure).

A process is a generator. It yields a `Use` (or several, which run side by side) and goes on when
all of them have ended, or a `Tokens` queue and is given what it takes out. Simultaneous events
happen in the order in which they were scheduled, so a run depends on nothing but its inputs.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any


class Resource:
    """Something that serves as many users at a time as it has places; others wait in line."""

    def __init__(self, places: int = 1) -> None:
        self.places = places
        self.busy_seconds = 0.0
        """How long its places were held, all together."""
        self._free = places
        self._waiting: deque[Callable[[], None]] = deque()

    def take(self, then: Callable[[], None]) -> None:
        """Calls back when a place is free, and holds it."""
        if self._free:
            self._free -= 1
            then()
        else:
            self._waiting.append(then)

    def give_back(self, held: float) -> None:
        """Ends a use; who waits longest comes next."""
        self.busy_seconds += held
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._free += 1


@dataclass(frozen=True, slots=True)
class Use:
    """Holds resources, taken one after the other, together for a time; without any, a delay."""

    seconds: float
    resources: tuple[Resource, ...] = ()


class Tokens:
    """A queue without bounds, between processes; the first that asks is the first served."""

    def __init__(self) -> None:
        self._tokens: deque[Any] = deque()
        self._takers: deque[Callable[[Any], None]] = deque()

    def put(self, token: Any) -> None:
        """Adds a token, or hands it to who waits."""
        if self._takers:
            self._takers.popleft()(token)
        else:
            self._tokens.append(token)

    def take(self, then: Callable[[Any], None]) -> None:
        """Calls back with the oldest token."""
        if self._tokens:
            then(self._tokens.popleft())
        else:
            self._takers.append(then)

    def __len__(self) -> int:
        return len(self._tokens)


Process = Generator[Use | Sequence[Use] | Tokens, Any, None]


class Engine:
    """A clock, and what is due when."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Does something after a while."""
        self._scheduled += 1
        heapq.heappush(self._due, (self.now + seconds, self._scheduled, action))

    def start(self, process: Process) -> None:
        """Begins a process now."""
        self.after(0.0, lambda: self._resume(process, None))

    def run_until(self, done: Callable[[], bool]) -> None:
        """Lets time pass until a condition holds, or nothing is left to happen."""
        while self._due and not done():
            self.now, _, action = heapq.heappop(self._due)
            action()

    def _resume(self, process: Process, value: Any) -> None:
        try:
            wanted = process.send(value)
        except StopIteration:
            return
        if isinstance(wanted, Tokens):
            # Through the clock, so that whoever puts the token goes on first.
            wanted.take(lambda token: self.after(0.0, lambda: self._resume(process, token)))
            return
        uses = [wanted] if isinstance(wanted, Use) else wanted
        left = len(uses)
        if not left:
            self.after(0.0, lambda: self._resume(process, None))
            return

        def ended() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._resume(process, None)

        for use in uses:
            self._serve(use, 0, ended)

    def _serve(self, use: Use, taken: int, ended: Callable[[], None]) -> None:
        """Takes the resource of that number and those after it, holds them all, gives them back."""
        if taken < len(use.resources):
            use.resources[taken].take(lambda: self._serve(use, taken + 1, ended))
            return

        def end() -> None:
            for resource in reversed(use.resources):
                resource.give_back(use.seconds)
            ended()

        self.after(use.seconds, end)
