"""A region as a unit of a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.passes.clusters.units import Unit
from runnel.runtime.dynamic.region import DynamicRegion
from runnel.runtime.schedule.unit import BoundUnit, Pending
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.state.step_context import NodeWaiter, StepContext


class RegionUnit(BoundUnit):
    """A loop or conditional that runs by pending counts."""

    __slots__ = ("_region",)

    def __init__(self, unit: Unit, place: int, region: DynamicRegion) -> None:
        super().__init__(unit, place)
        self._region = region

    @property
    def runners(self) -> Sequence[SegmentRunner]:
        return self._region.runners

    def start(self, args: list[Any], context: StepContext, pending: Pending) -> Any:
        return self._region.start(args, context, self)

    def resume(self, waiter: NodeWaiter, context: StepContext) -> Any:
        return self._region.resume(waiter, context)
