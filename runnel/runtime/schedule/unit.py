"""The units of a schedule, bound to the state of a task.

A unit can be started, and sends its values. Starting a compiled segment does not wait for it, nor
does a transfer. A blocking operation returns its results, or ``WAITING``: then the step goes on
without it, and the waiter that it got tells when to resume it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from runnel.passes.clusters.cluster import Segment
from runnel.passes.clusters.units import Unit
from runnel.passes.program.kernel_call import blocking
from runnel.passes.program.program import Node, ValueInfo
from runnel.queues.waiter import WAITING
from runnel.runtime.compile.unconfirmed import Unconfirmed
from runnel.runtime.devices.transfer import Transfer
from runnel.runtime.dynamic.region import DynamicRegion
from runnel.runtime.interpret import verification
from runnel.runtime.interpret.interpreter import arrived, as_op_error
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.state.step_context import NodeWaiter, StepContext

Pending = dict[int, Unconfirmed]
"""By place: what has been started and not yet been seen to succeed."""


class BoundUnit:
    """A unit at its place in a schedule."""

    __slots__ = ("place", "inputs", "outputs", "needs", "awaited", "transfers", "kept", "device")

    def __init__(self, unit: Unit, place: int) -> None:
        self.place = place
        self.inputs = unit.inputs
        """Where its values are found: those from another device under the number that they have
        been received as."""
        self.outputs = unit.outputs
        self.needs = unit.needs
        """Places of the units that must have run."""
        self.awaited: tuple[int, ...] = ()
        """Places of the units whose checks must have held before this one changes anything."""
        self.transfers: list[Transfer] = []
        """What is sent when it has run."""
        self.kept: list[int] = []
        """What an operation of the host may have given on another device, for users on the host."""
        self.device = unit.device
        """Where it runs, in a step over several devices."""

    @property
    def has_effects(self) -> bool:
        """True when running it may leave a trace: in state, or outside."""
        return True

    @property
    def replaces_state(self) -> bool:
        """True when it replaces the values of variables."""
        return False

    @property
    def runners(self) -> Sequence[SegmentRunner]:
        """What may be compiled in it."""
        return ()

    def takes_array(self, value: int) -> bool:
        """True when a compiled version takes ``value`` as an array, not to be built for it."""
        return False

    def start(self, args: list[Any], context: StepContext, pending: Pending) -> Any:
        """The outputs, or ``WAITING``; ``pending`` gets what is still to be confirmed."""
        raise NotImplementedError

    def resume(self, waiter: NodeWaiter, context: StepContext) -> Any:
        """The outputs, or ``WAITING`` again, when something that it waited for has arrived."""
        raise NotImplementedError


class SegmentUnit(BoundUnit):
    """A segment."""

    __slots__ = ("runner", "_segment")

    def __init__(self, unit: Unit, place: int, runner: SegmentRunner) -> None:
        super().__init__(unit, place)
        self.runner = runner
        self._segment: Segment = runner.segment

    @property
    def has_effects(self) -> bool:
        return self.runner.has_effects

    @property
    def replaces_state(self) -> bool:
        return bool(self.runner.state.stored)

    @property
    def runners(self) -> Sequence[SegmentRunner]:
        return (self.runner,)

    def takes_array(self, value: int) -> bool:
        segment = self._segment
        return segment.compilable and value in segment.inputs and value not in segment.specialized

    def start(self, args: list[Any], context: StepContext, pending: Pending) -> Any:
        started: list[Unconfirmed] = []
        results = self.runner.run(args, context, started)
        if started:
            pending[self.place] = started[0]
        return results


class BlockingUnit(BoundUnit):
    """An operation that may have to wait for another step."""

    __slots__ = ("node", "_call", "_infos")

    def __init__(self, unit: Unit, place: int, infos: Sequence[ValueInfo]) -> None:
        super().__init__(unit, place)
        assert isinstance(unit.content, Node)
        self.node = unit.content
        self._call = blocking(self.node)
        self._infos = [infos[value] for value in unit.outputs]

    def start(self, args: list[Any], context: StepContext, pending: Pending) -> Any:
        node = self.node
        if context.deadline is not None or context.cancelled is not None:
            context.require_time(node)
        begun = time.perf_counter_ns() if context.observer is not None else 0
        waiter = context.waiter(node, (self, begun))
        try:
            results = self._call(waiter, *args)
        except Exception as error:
            raise as_op_error(error, node, args) from error
        if results is WAITING:
            context.begin_to_wait(waiter)
        else:
            self._note(begun, results, context)
        return results

    def resume(self, waiter: NodeWaiter, context: StepContext) -> Any:
        results = arrived(waiter)
        self._note(waiter.where[1], results, context)
        return results

    def _note(self, begun: int, results: Any, context: StepContext) -> None:
        if verification.enabled:
            verification.verify_all(self.node, self._infos, results)
        if context.observer is not None:
            context.observer.operation(self.node, begun, time.perf_counter_ns(), results)


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
