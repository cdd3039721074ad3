"""Decides whether the other side of a channel is still there, from what was heard when (pure).

A process that is killed closes its connections, which the other side sees at once. One that is
stopped, or cut off, says nothing. So the other side asks, and takes it for lost when no answer has
come by the deadline.
"""

from __future__ import annotations

import os
from typing import Literal

DEADLINE_SECONDS = 10.0
"""For how long a task may be silent; ``RUNNEL_HEARTBEAT_SECONDS`` sets another time."""


def deadline_from_environment() -> float:
    """For how many seconds this process lets another be silent."""
    return float(os.environ.get("RUNNEL_HEARTBEAT_SECONDS") or DEADLINE_SECONDS)


Verdict = Literal["well", "ask", "lost"]


class Pulse:
    """When a channel was last heard."""

    __slots__ = ("_deadline", "_heard_at", "_seen_at")

    def __init__(self, now: float, deadline: float) -> None:
        self._deadline = deadline
        self._heard_at = self._seen_at = now

    def tick(self, now: float, heard: bool) -> Verdict:
        """What is to be done; ``heard`` says whether something has come since the last tick."""
        late = now - self._seen_at > self._deadline / 2
        self._seen_at = now
        if heard or late:  # who was stopped itself has heard nothing meanwhile
            self._heard_at = now
            return "ask" if late else "well"
        silent = now - self._heard_at
        if silent > self._deadline:
            return "lost"
        return "ask" if silent > self._deadline / 4 else "well"

    @property
    def interval(self) -> float:
        """Seconds between two ticks."""
        return self._deadline / 8
