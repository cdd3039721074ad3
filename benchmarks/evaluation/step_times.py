"""How long an accelerator is at work in a step: a spread around a median, and stragglers (pure)."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepTimes:
    """A lognormal time; some steps straggle and take several times as long."""

    seconds: float
    """The median of steps that do not straggle."""
    spread: float = 0.0
    """The standard deviation of the time's logarithm."""
    straggling: float = 0.0
    """The share of steps that straggle."""
    times: float = 1.0
    """How many times longer these take."""

    def draw(self, source: random.Random) -> float:
        """The time of one step."""
        time = self.seconds * math.exp(source.gauss(0.0, self.spread))
        return time * self.times if source.random() < self.straggling else time
