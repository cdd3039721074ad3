"""Running a step on one device in which nothing can block: one segment after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.runtime.tiers import SegmentRunner


class StraightLine:
    """The segments of a step, in their order."""

    __slots__ = ("runners", "_steps")

    def __init__(self, runners: Sequence[SegmentRunner]) -> None:
        self.runners = runners
        self._steps = [
            (runner, runner.segment.inputs, runner.segment.outputs) for runner in runners
        ]

    def run(
        self, values: dict[int, Any], deadline: float | None = None, observer: Any = None
    ) -> None:
        """Computes everything into ``values``, which hold what was fed."""
        for runner, inputs, outputs in self._steps:
            results = runner.run([values[number] for number in inputs], deadline, observer)
            for number, value in zip(outputs, results, strict=True):
                values[number] = value
