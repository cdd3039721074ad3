"""Estimates how far another task's clock is ahead of this one's, from pings, as NTP does."""

from __future__ import annotations

from collections import deque

_KEPT = 16
"""How many round trips count: clocks drift, so that old ones say little."""


class ClockOffset:
    """What pings to one task have shown. All times are in nanoseconds since the epoch."""

    __slots__ = ("_trips",)

    def __init__(self) -> None:
        # Changed by single operations only: one thread notes, others read.
        self._trips: deque[tuple[int, int]] = deque(maxlen=_KEPT)

    def note(self, asked: int, received: int, answered: int, heard: int) -> None:
        """A ping was sent at ``asked`` and its answer heard at ``heard``, by this clock.

        By the other one it was received at ``received`` and answered at ``answered``.
        """
        trip = (heard - asked) - (answered - received)
        ahead = ((received - asked) + (answered - heard)) // 2
        self._trips.append((trip, ahead))

    @property
    def nanoseconds(self) -> int:
        """By how much the other clock is ahead: what the shortest round trip says, or 0.

        The longer a trip, the more its two ways may differ.
        """
        return min(self._trips, default=(0, 0))[1]
