"""Regions: loops and conditionals that run by pending counts.

A node runs when all that it waits for has arrived; *pending* counts say how much is missing. Values
arrive in an iteration of a frame: ``Enter`` begins a child frame, ``NextIteration`` an iteration,
``Exit`` hands a value to the iteration that began the frame. A node reached by a *dead* value does
not run. Its outputs are dead too, with three exceptions: ``Merge`` waits for an input that is
alive, ``NextIteration`` ends there, and ``Exit`` tells its frame's parent only when the whole loop
has ended without a live value.

Of the ready nodes, the one that comes first in its frame runs first (``passes.structure.frames``):
by the order of construction within an iteration, and iterations one after the other. So effects on
state have a defined order. An iteration is forgotten when it has run.

A blocking operation that has to wait holds back the nodes that need it. Everything else goes on,
later iterations included: as many as the loop's ``parallel_iterations`` are under way at once. When
only waiting is left, the region stores what it has written and gives its variables back, and takes
them again when it resumes.

NumPy interprets nodes one by one, but two things make that the exception. Nodes of one frame that
live, wait and compile together are one task: a stretch, which is compiled when that pays
(``passes.clusters.frame_units``, ``runnel.runtime.interpret.stretch``). And a loop in which nothing
waits runs as a whole when all that enters it is there, in the order that pending counts would give
(``runnel.runtime.dynamic.loop_code``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from runnel.graph.device_set import LogicalDevice
from runnel.passes.clusters.cluster import Segment
from runnel.passes.clusters.frame_units import FrameUnits, Unit
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.structure.frames import Frame, Frames
from runnel.passes.structure.liveness import Liveness
from runnel.passes.structure.structured import Dynamic, Touched
from runnel.queues.rendezvous import DEAD
from runnel.queues.waiter import WAITING
from runnel.runtime.dynamic.layout import StepLayout
from runnel.runtime.dynamic.loop_code import add_functions
from runnel.runtime.dynamic.region_run import RegionRun
from runnel.runtime.dynamic.region_state import Reference, RegionState, RegionVariables
from runnel.runtime.interpret.stretch import Stretch, is_worth_it
from runnel.runtime.segment.tiers import SegmentRunner
from runnel.runtime.state.options import ALWAYS, NEVER, SessionOptions
from runnel.runtime.state.step_context import NodeWaiter, StepContext
from runnel.runtime.state.task_state import TaskState

_NO_STATE = StateAccess(Program([], {}, ()))
"""Stretches take the values of variables, never variables."""


class DynamicRegion:
    """A part of a step that runs by pending counts, prepared once and run many times."""

    def __init__(
        self,
        region: Dynamic,
        touched: Touched,
        task: TaskState,
        device: str,
        options: SessionOptions,
        device_of: Mapping[Node, LogicalDevice] | None = None,
    ) -> None:
        """``device_of`` says where each node is, if there are several devices."""
        program = region.program
        self._task = task
        self._program = program
        self._inputs = region.inputs
        self._device = device
        self._options = options
        self.runners: list[SegmentRunner] = []
        """What runs the stretches."""
        frames = Frames(program)
        liveness = Liveness(program, frames, region.uncertain)
        units: Mapping[Frame, Sequence[Unit]] = {f: f.items for f in frames.frames}
        if options.jit != NEVER:
            worth = partial(is_worth_it, device=device, always=options.jit == ALWAYS)
            units = FrameUnits(program, frames, liveness, device, device_of, worth).of
        self._layout = StepLayout(program, frames, units, device, self._stretch)
        add_functions(self._layout, liveness, program.infos)
        self._variables = RegionVariables(program, touched, task)

    def _stretch(self, segment: Segment) -> Stretch:
        runner = SegmentRunner(
            *(self._program, segment, _NO_STATE, self._task, self._device, self._options),
            passes_state=True,
        )
        self.runners.append(runner)
        return Stretch(runner)

    def start(self, args: Sequence[Any], context: StepContext, unit: Any) -> Any:
        """The outputs for ``args``, or ``WAITING``; ``unit`` is told when something arrives."""
        state = self._variables.begin(context)
        try:
            run = RegionRun(self._layout, state, context, unit)
            for value, given in zip(self._inputs, args, strict=True):
                run.feed(self._layout, value, given)
            return self._go_on(run, context)
        finally:
            state.end()

    def resume(self, waiter: NodeWaiter, context: StepContext) -> Any:
        """The outputs, or ``WAITING`` again, when an operation inside has its result."""
        run = waiter.where[1]
        run.state.resume(context)
        try:
            run.take_up(waiter)
            return self._go_on(run, context)
        finally:
            run.state.end()

    def _go_on(self, run: RegionRun, context: StepContext) -> Any:
        """Runs until all has run, or only waiting is left: then others may use the variables."""
        if not run.go_on():
            run.state.suspend(context)
            return WAITING
        results = [self._given(run.values[slot], run.state) for slot, _ in self._layout.fetches]
        run.state.commit(context)
        return results

    @staticmethod
    def _given(value: Any, state: RegionState) -> Any:
        if isinstance(value, Reference):
            return state.final(value)
        return None if value is DEAD else value
