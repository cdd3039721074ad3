"""The event-driven executor: runs steps with dynamic control flow.

A node runs when what it waits for has arrived; *pending* counts say how much is missing. Values
arrive in an iteration of a frame: ``Enter`` begins a child frame, ``NextIteration`` an iteration,
``Exit`` hands a value to the iteration that began the frame. A node reached by a *dead* value does
not run: its outputs are dead too, except that ``Merge`` waits for an input that is alive, that
``NextIteration`` ends there, and that ``Exit`` tells its frame's parent only when the whole loop
has ended without a live value.

Of the nodes that are ready, the one runs that comes first in its frame
(``passes.structure.frames``): the order of construction within an iteration, iterations one after
the other. So effects on state have a defined order. An iteration is forgotten when it has run.

A blocking operation that has to wait keeps back what needs it; everything else goes on, later
iterations included: as many as the loop's ``parallel_iterations`` are under way at once. When only
waiting is left, the step gives its variables back (what it has written is stored), sleeps, and
takes them again.

Nodes are interpreted with NumPy one by one, but two things make that the exception. Nodes of one
frame that live, wait and compile together are one task, a stretch that is compiled when that pays
(``passes.clusters.frame_units``, ``runnel.runtime.segment.stretch``). And a loop in which nothing
waits runs as a whole when all that enters it is there, in the order that pending counts would give
(``runnel.runtime.dynamic.dataflow_code``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from heapq import heapify
from typing import Any

import numpy as np

from runnel.graph import errors
from runnel.graph.device_set import LogicalDevice
from runnel.passes.clusters.cluster import Segment
from runnel.passes.clusters.frame_units import FrameUnits, Unit
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.structure.frames import Frame, Frames
from runnel.passes.structure.liveness import Liveness
from runnel.runtime.dynamic.dataflow_code import add_functions
from runnel.runtime.dynamic.dataflow_frames import Iteration, Running
from runnel.runtime.dynamic.dataflow_layout import DEAD, DYNAMIC_OPS, StepLayout
from runnel.runtime.dynamic.dataflow_step import DynamicStep
from runnel.runtime.dynamic.step_state import Reference, StepState, StepVariables
from runnel.runtime.segment.stretch import Stretch, is_worth_it
from runnel.runtime.segment.tiers import ALWAYS, NEVER, SegmentRunner
from runnel.runtime.state.random_streams import RandomStreams
from runnel.runtime.state.state import StateStore, as_numpy

_NO_STATE = StateAccess(Program([], {}, ()))
"""Stretches take the values of variables, never variables."""


class DataflowPlan:
    """A step with dynamic control flow, prepared once for a signature and run many times."""

    def __init__(
        self,
        program: Program,
        store: StateStore,
        streams: RandomStreams,
        device: str,
        mode: str,
        device_of: Mapping[Node, LogicalDevice] | None = None,
    ) -> None:
        """``device_of`` says where each node is, if there are several devices."""
        self._store = store
        self._program = program
        self._streams = streams
        self._device = device
        self._mode = mode
        self.runners: list[SegmentRunner] = []
        """What runs the stretches."""
        frames = Frames(program)
        liveness = Liveness(program, frames)
        units: Mapping[Frame, Sequence[Unit]] = {f: f.items for f in frames.frames}
        if mode != NEVER:
            worth = partial(is_worth_it, device=device, always=mode == ALWAYS)
            units = FrameUnits(program, frames, liveness, device, device_of, worth).of
        self._layout = StepLayout(program, frames, units, device, self._stretch)
        add_functions(self._layout, liveness, program.infos)
        self._variables = StepVariables(program, store, streams)

    def _stretch(self, segment: Segment) -> Stretch:
        runner = SegmentRunner(
            *(self._program, segment, _NO_STATE, self._store, self._device, self._mode),
            self._streams,
            passes_state=True,
        )
        self.runners.append(runner)
        return Stretch(runner)

    def run(
        self, values: dict[int, Any], deadline: float | None = None, observer: Any = None
    ) -> None:
        """Adds the fetched values to ``values``, which are those fed; state is replaced."""
        layout = self._layout
        state = self._variables.begin()
        step: DynamicStep | None = None
        try:
            step = DynamicStep(self._store, state, deadline, observer)
            root = Iteration(layout.root, Running(layout.root, None), 0)
            root.running.iterations[0] = root
            root.ready = list(layout.sources)
            heapify(root.ready)
            for value, edges in layout.feeds.items():
                step.deliver(root, edges, layout.fed_merges[value], as_numpy(values[value]), False)
            with np.errstate(all="ignore"):
                step.run_iteration(layout.root, root)
                while step.waits.outstanding:
                    step.wait()
                    step.run_iteration(layout.root, root)
            fetched = {
                value: self._fetched(root.values[slot], value, state)
                for slot, value in layout.fetches
            }
            state.commit()
            values.update(fetched)
        finally:
            state.end()
            if step is not None:
                step.waits.end()

    def _fetched(self, value: Any, number: int, state: StepState) -> Any:
        if isinstance(value, Reference):
            return state.final(value)
        if value is DEAD or value is None:
            from runnel.control_flow.context import how_to_bring_out

            op = self._program.producers()[number].op
            message = f"{op.name!r} was fetched, but has no value: a branch was not taken. "
            raise errors.InvalidArgumentError(None, op, message + how_to_bring_out(op))
        return value


__all__ = ["DYNAMIC_OPS", "DataflowPlan"]
