"""Running a step on one device in which nothing can block: one segment after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.runtime.segment.tiers import SegmentRunner


class WholeStep:
    """A step that is one segment, with its feeds and fetches by position."""

    __slots__ = ("_run", "_inputs", "_outputs")

    def __init__(self, runner: SegmentRunner, inputs: list[int], outputs: list[int]) -> None:
        self._run = runner.run
        self._inputs = inputs
        self._outputs = outputs

    def run(self, feeds: list[Any], deadline: float | None, observer: Any) -> list[Any]:
        """The fetched values."""
        results = self._run([feeds[i] for i in self._inputs], deadline, observer)
        return [results[i] for i in self._outputs]


class StraightLine:
    """The segments of a step, in their order."""

    __slots__ = ("runners", "_steps")

    def __init__(self, runners: Sequence[SegmentRunner]) -> None:
        self.runners = runners
        self._steps = [
            (runner, runner.segment.inputs, runner.segment.outputs) for runner in runners
        ]

    def as_whole(self, feeds: Sequence[int], fetches: Sequence[int]) -> WholeStep | None:
        """The step as one segment, which must use fed values alone and make all that is fetched."""
        if len(self._steps) != 1:
            return None
        [(runner, inputs, outputs)] = self._steps
        if not set(inputs).issubset(feeds) or not set(fetches).issubset(outputs):
            return None
        places = [feeds.index(value) for value in inputs]
        return WholeStep(runner, places, [outputs.index(value) for value in fetches])

    def run(
        self, values: dict[int, Any], deadline: float | None = None, observer: Any = None
    ) -> None:
        """Computes everything into ``values``, which hold what was fed."""
        for runner, inputs, outputs in self._steps:
            results = runner.run([values[number] for number in inputs], deadline, observer)
            for number, value in zip(outputs, results, strict=True):
                values[number] = value
