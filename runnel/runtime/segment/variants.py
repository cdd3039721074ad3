"""Knowledge of a segment for each signature: the shapes (and known values) that it has met."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np

from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import is_fully_defined
from runnel.passes.clusters.cluster import Segment
from runnel.passes.program.program import Program
from runnel.runtime.segment.cut_segment import CutSegment
from runnel.runtime.segment.tier_trial import TierTrial
from runnel.runtime.state.cell import Cell, as_numpy
from runnel.runtime.state.task_state import TaskState

logger = logging.getLogger("runnel")

_MANY_SIGNATURES = 8
_MAX_EXECUTABLES = 256
_MAX_SIGNATURES = 1 << 12
_MAX_SPECIALIZED_BYTES = 1 << 12
_UNTIMED = 1 << 10
"""So many compiled calls may come between two that are timed."""

Shapes = tuple[tuple[int, ...], ...]


class Timing:
    """How often a segment ran in one tier, and what the runs that were timed have taken.

    Threads count without a lock: a run may be missed.
    """

    __slots__ = ("calls", "runs", "seconds", "fastest", "longest", "due")

    def __init__(self) -> None:
        self.calls = 0
        """How often a compiled form was called, timed or not."""
        self.due = 1
        """The number of calls from which on the next one is to be timed."""
        self.runs = 0
        """How many runs were timed: all that are interpreted, some that are compiled."""
        self.seconds = 0.0
        self.fastest = math.inf
        """The shortest time of a run: what it takes when nothing else wants the processor."""
        self.longest = 0.0

    def note(self, seconds: float) -> None:
        """Takes note of a run."""
        self.seconds += seconds
        self.fastest = min(self.fastest, seconds)
        self.longest = max(self.longest, seconds)
        self.runs += 1
        self.due = self.calls + min(self.calls, _UNTIMED)


class Variant:
    """A segment for one signature: what running it has cost, its compiled form if any."""

    __slots__ = (
        "interpreted",
        "compiled",
        "trial",
        "slower",
        "compared",
        "executable",
        "refused",
        "cut",
        "input_shapes",
        "state_shapes",
    )

    def __init__(self, input_shapes: Shapes, state_shapes: Shapes) -> None:
        self.interpreted = Timing()
        self.compiled = Timing()
        """Timed to see whether the compiled form is to be kept, and now and then."""
        self.trial: TierTrial | None = None
        """Of a compiled form that is there because it may be faster, not because it must be."""
        self.slower = 0
        """How often a compiled form was given up because it was slower."""
        self.compared = (0.0, 0.0)
        """What it then took, and what the interpreter took."""
        self.executable: Any = None
        self.refused = False
        """True when it stays interpreted: it cannot be compiled, or must not be."""
        self.cut: CutSegment | None = None
        """The segment in pieces, where only a part of it cannot be compiled."""
        self.input_shapes = input_shapes
        self.state_shapes = state_shapes
        """Shapes of the variables whose shape may change from step to step."""


class Variants:
    """The variants of one segment, the newest of them: their number is bounded."""

    def __init__(
        self,
        program: Program,
        segment: Segment,
        loads: list[tuple[Cell, Operation]],
        task: TaskState,
    ) -> None:
        self._program = program
        self._segment = segment
        self._loads = loads
        self._task = task
        self._known: dict[Any, Variant] = {}
        self._compiled: dict[Variant, None] = {}
        self._told = False
        self._shape_changers = -1
        self._changing: list[Cell] = []
        self.specialized = [
            i for i, value in enumerate(segment.inputs) if value in segment.specialized
        ]

    def find(self, inputs: list[Any]) -> Variant | None:
        """The variant for ``inputs``; None when a value to build it for is too large, or dead."""
        try:
            shapes = tuple([value.shape for value in inputs])
        except AttributeError:  # what a branch that was not taken leaves
            shapes = tuple([np.shape(value) for value in inputs])
        key: Any = shapes
        if self.specialized:
            values = [as_numpy(inputs[i]) for i in self.specialized]
            if any(v is None or v.nbytes > _MAX_SPECIALIZED_BYTES for v in values):
                return None
            key = (key, *[v.tobytes() for v in values])
        if self._shape_changers != self._task.shape_changers:
            self._find_changing()
        state_shapes: Shapes = ()
        if self._changing:
            state_shapes = self.state_shapes()
            key = (key, state_shapes)
        variant = self._known.get(key)
        if variant is None:
            if len(self._known) >= _MAX_SIGNATURES:
                self._known.pop(next(iter(self._known)), None)
            variant = self._known.setdefault(key, Variant(shapes, state_shapes))
        return variant

    def _find_changing(self) -> None:
        """Finds the variables whose shape is part of the signature."""
        self._shape_changers = self._task.shape_changers
        self._changing = [
            cell
            for cell, variable in self._loads
            if cell.changes_shape or not is_fully_defined(variable.attrs["shape"]._dims)
        ]

    def state_shapes(self) -> Shapes:
        """The present shapes of the variables whose shape may change."""
        return tuple([np.shape(cell.held) for cell in self._changing])

    def reshaped(self, variant: Variant) -> bool:
        """True when a variable has another shape now than ``variant`` is for."""
        return variant.state_shapes != self.state_shapes()

    @property
    def are_compiled(self) -> bool:
        """True when there is a compiled form."""
        return bool(self._compiled)

    @property
    def are_many(self) -> bool:
        """True when there are so many compiled forms that another one is hardly worth it."""
        return len(self._compiled) >= _MANY_SIGNATURES

    @property
    def meet_several(self) -> bool:
        """True when shapes change: more have come than a last, smaller batch explains."""
        return len(self._known) > 2

    @property
    def meet_many(self) -> bool:
        """True when there are many signatures: each will come rarely."""
        return len(self._known) >= _MANY_SIGNATURES

    def note_compiled(self, variant: Variant) -> None:
        """Drops the oldest executable if there are too many; mentions it once if there are many.

        Called by one thread at a time.
        """
        self._compiled[variant] = None
        if len(self._compiled) > _MAX_EXECUTABLES:
            oldest = next(iter(self._compiled))
            del self._compiled[oldest]
            oldest.executable = None
        if self.are_many and not self._told:
            self._told = True
            self._tell()

    def forget_compiled(self, variant: Variant) -> None:
        """Notes that the compiled form of ``variant`` has been dropped."""
        self._compiled.pop(variant, None)

    def _tell(self) -> None:
        shapes = [variant.input_shapes for variant in self._compiled]
        varying = [
            self.input_name(i)
            for i in range(len(self._segment.inputs))
            if len({shape[i] for shape in shapes}) > 1
        ]
        logger.warning(
            "A step has been compiled for %d different signatures; what varies is the shape of %s. "
            "Padding or bucketing it to fewer shapes avoids compiling.",
            len(shapes),
            ", ".join(varying) or "a value that shapes depend on",
        )

    def input_name(self, position: int) -> str:
        """The name of an input of the segment, for people."""
        value = self._segment.inputs[position]
        for tensor, number in self._program.feeds.items():
            if number == value and isinstance(tensor, Tensor):
                return tensor.name
        for node in self._program.nodes:
            if value in node.outputs:
                return f"{node.op.name}:{node.outputs.index(value)}"
        takers = [node for node in self._segment.nodes if value in node.inputs]
        return f"an input of {takers[0].op.name}" if takers else f"input {position}"
