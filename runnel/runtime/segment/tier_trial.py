"""Tries whether a compiled form is faster than the interpreter in the steps as they really run.

A compiled call needs a processor for XLA's threads, and may have to copy state that others hold;
interpreted code runs on the step's own thread. So the rest of the process and of the machine
decides which of the two is faster, and that may change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

RUNS = 10
"""The runs of either tier that are compared."""
SLOWER = 1.5
"""How many times slower the compiled form has to be to be given up."""
_CALMER = 2.0
"""How many times less the compiled form has to take than when the two were compared, for that to
say nothing any more: the machine was busy then."""
_LEFT_OUT = 5
"""One run of so many may have been held up."""
_INTERVAL = 32
"""A compiled form that was kept is looked at once in so many runs."""
_LOOKS = 8
"""So many looks are a judgement."""


class TierTrial:
    """Runs of a compiled form, and of the interpreter where these do not win clearly.

    A form that wins is kept, and looked at now and then: once it takes longer than the interpreter
    did, both are tried again; so they are once it takes much less than when they were compared.
    ``usual`` is how long an interpreted run has taken, at best.

    >>> trial = TierTrial(usual=1.0)
    >>> for number in range(RUNS + 1): trial.note(number, number + 0.5)
    >>> trial.is_over, trial.is_kept
    (True, True)

    The first run of each tier prepares it and brings the state there; it does not count, nor does
    whatever other threads began before it had ended.
    """

    __slots__ = (
        "is_over",
        "is_kept",
        "compared",
        "_usual",
        "_compared_at",
        "_since",
        "_compiled",
        "_interpreted",
        "_interval",
        "_runs",
    )

    def __init__(self, usual: float) -> None:
        self.is_over = False
        self.is_kept = True
        """False when the compiled form is to be given up."""
        self.compared = (0.0, 0.0)
        """How long a run takes compiled, and interpreted."""
        self._usual = usual
        self._compared_at = 0.0
        """What the compiled form took when the interpreter was tried too."""
        self._since = dict.fromkeys((False, True), math.inf)
        """When the first run has ended: compiled, and interpreted."""
        self._compiled: list[float] = []
        self._interpreted: list[float] = []
        self._interval = _INTERVAL
        self._runs = 0

    @property
    def interprets(self) -> bool:
        """Whether the next run is the interpreter's."""
        return not self.is_over and len(self._compiled) >= RUNS

    def looks(self) -> bool:
        """Whether to time the next run."""
        if not self.is_over:
            return True
        self._runs += 1
        return self._runs % self._interval == 0

    def note(self, began: float, ended: float, interpreted: bool = False) -> None:
        """Takes note of a run that was timed."""
        if interpreted and self.is_over:
            return
        if began < self._since[interpreted]:
            self._since[interpreted] = min(ended, self._since[interpreted])
            return
        (self._interpreted if interpreted else self._compiled).append(ended - began)
        if self.is_over:
            if len(self._compiled) >= _LOOKS:
                self.is_over = self._is_fast()
                if self._compared_at > _CALMER * self.compared[0]:
                    self.is_over, self._usual = False, 0.0  # how long it takes now is not known
                self._compiled = []
        elif len(self._interpreted) >= RUNS:
            self._usual = typical(self._interpreted)
            is_kept = self._is_fast()
            self._compared_at = self.compared[0]
            self._end(is_kept)
        elif len(self._compiled) == RUNS and self._is_fast():
            self._end(True)

    def _is_fast(self) -> bool:
        self.compared = typical(self._compiled), self._usual
        return self.compared[0] <= SLOWER * self._usual

    def _end(self, is_kept: bool) -> None:
        self.is_over, self.is_kept = True, is_kept
        self._compiled, self._interpreted = [], []
        self._since[True] = math.inf
        if self._runs:  # what was doubted and kept is doubted later next time
            self._interval *= 2


def typical(seconds: Sequence[float]) -> float:
    """The mean, without the longest."""
    used = sorted(seconds)[: len(seconds) - len(seconds) // _LEFT_OUT]
    return sum(used) / len(used)
