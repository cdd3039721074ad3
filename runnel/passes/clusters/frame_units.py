"""Cuts the frames of a region into units: stretches that compile, and single nodes.

The nodes of a stretch belong to one frame, are alive together (``passes.structure.liveness``), wait
for the same blocking operations, in this iteration or an earlier one, and are on one device. So if
one of its nodes must wait, all must. A stretch is convex: ``passes.clusters.cluster`` clusters the
frame's nodes and leaves the primitives of control flow to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runnel.graph.device_set import LogicalDevice
from runnel.graph.registry import OpDef
from runnel.ops.control_flow import EXITS, MERGES, NEXT_ITERATIONS
from runnel.passes.clusters.cluster import Group, Segment, cluster
from runnel.passes.program.program import Node, Program
from runnel.passes.program.reached_state import ReachedState
from runnel.passes.structure.frames import Frame, Frames
from runnel.passes.structure.liveness import Conditions, Liveness
from runnel.passes.structure.structured import Touched

Unit = Node | Frame | Segment
"""What an iteration runs as one: a node, a whole inner loop, a stretch."""


class FrameUnits:
    """The units of each frame of a program, in the order in which an iteration runs them."""

    def __init__(
        self,
        program: Program,
        frames: Frames,
        liveness: Liveness,
        device: str,
        device_of: Mapping[Node, LogicalDevice] | None,
        is_worth_it: Callable[[Segment, Program], bool],
    ) -> None:
        self._program = program
        self._frames = frames
        self._liveness = liveness
        self._device = device
        self._device_of = device_of
        self._is_worth_it = is_worth_it
        self._state = ReachedState(program)
        self._waits = awaited_blocking(program)
        self._fixed: dict[Frame, set[int] | None] = {frames.outermost: None}
        """The values for which stretches may be compiled; None: all that are small integers."""
        self.of: dict[Frame, list[Unit]] = {}
        for frame in frames.frames:
            self.of[frame] = self._cut(frame)

    def _cut(self, frame: Frame) -> list[Unit]:
        fixed = self._fixed_in(frame)
        part = _FrameProgram(self._program, frame, self._frames, self._state)
        groups = self._groups(part)
        device_of = None
        if self._device_of is not None:
            placed = self._device_of
            device_of = {new: placed[part.placed_like(new)] for new in part.program.nodes}
        units: dict[Unit, None] = {}
        for segment in cluster(part.program, self._state, self._device, device_of, fixed, groups):
            if segment.compilable and self._is_worth_it(segment, part.program):
                units[segment] = None
            else:  # a constant may be in several
                units.update(dict.fromkeys(part.original[node] for node in segment.nodes))
        # What no one takes (a constant that is only waited for) is in no segment.
        held = {part.original[n] for u in units if isinstance(u, Segment) for n in u.nodes}
        left = [item for item in frame.items if item not in units and item not in held]
        return [*left, *units]

    def _fixed_in(self, frame: Frame) -> set[int] | None:
        if frame.parent is None:
            return None
        outside = self._fixed[frame.parent]
        fixed = {
            enter.outputs[0]
            for enter in frame.enters
            if enter.attrs["is_constant"] and (outside is None or enter.inputs[0] in outside)
        }
        self._fixed[frame] = fixed
        return fixed

    def _groups(self, part: _FrameProgram) -> dict[Node, Group]:
        """A number for each combination of conditions and waits; larger ones need smaller ones."""
        numbers: dict[tuple[Conditions, frozenset[Node]], int] = {}
        found: dict[Node, Group] = {}
        for new in part.program.nodes:
            node = part.original[new]
            if isinstance(node, Node):
                conditions, waits = self._liveness.of[node], self._waits[node]
                number = numbers.setdefault((conditions, waits), len(numbers))
                found[new] = (len(conditions) + len(waits), number)
        return found


def awaited_blocking(program: Program) -> dict[Node, frozenset[Node]]:
    """The blocking operations that each node waits for, in its iteration or before it."""
    producers = program.producers()
    waits: dict[Node, frozenset[Node]] = dict.fromkeys(program.nodes, frozenset())
    if not any(node.op_def.blocking for node in program.nodes):
        return waits
    changed = True
    while changed:  # what is handed on to the next iteration goes around
        changed = False
        for node in program.nodes:
            before = [producers[v] for v in node.inputs if v in producers]
            before += node.control
            found = waits[node].union(*(waits[other] for other in before))
            found |= {other for other in before if other.op_def.blocking}
            if found != waits[node]:
                waits[node] = found
                changed = True
    return waits


class _FrameProgram:
    """One frame as a program: inner loops are nodes, what an iteration begins with is fed."""

    def __init__(self, program: Program, frame: Frame, frames: Frames, state: ReachedState) -> None:
        self.original: dict[Node, Node | Frame] = {}
        self._producers = program.producers()
        copies: dict[Node, Node] = {}
        nodes: list[Node] = []
        feeds: dict[int, int] = {}
        defined: set[int] = set()
        exits: dict[Frame, list[Node]] = {}
        for node, inside in frames.runs_in.items():
            if node.op_def.name in EXITS and inside.parent is frame:
                exits.setdefault(inside, []).append(node)
        for item in frame.items:
            if isinstance(item, Frame):
                left = exits.get(item, [])
                inputs = tuple([enter.outputs[0] for enter in item.enters])
                outputs = tuple([node.outputs[0] for node in left])
                new = self._loop(item, inputs, outputs, frames, state)
                copies.update(dict.fromkeys(left, new))
            else:
                control = tuple(dict.fromkeys(copies[c] for c in item.control if c in copies))
                inputs, outputs = self._inputs(item), item.outputs
                if item.op_def.name in EXITS:
                    outputs = ()
                new = Node(item.op, item.op_def, inputs, outputs, control, item.attrs)
                copies[item] = new
            self.original[new] = item
            nodes.append(new)
            feeds.update({value: value for value in inputs if value not in defined})
            defined.update(outputs)
        fetches = program.fetches if frame.parent is None else ()
        self.program = Program(nodes, feeds, fetches, program.infos)

    @staticmethod
    def _loop(
        loop: Frame,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        frames: Frames,
        state: ReachedState,
    ) -> Node:
        """A node in place of an inner loop, which touches what is touched inside."""
        inside = [node for node, frame in frames.runs_in.items() if frame.is_inside(loop)]
        reads = dict.fromkeys(v for node in inside for v in state.reads(node))
        writes = dict.fromkeys(v for node in inside for v in state.writes(node))
        touched = Touched(tuple(reads), tuple(writes), (), ())
        stateful = any(n.op_def.stateful and n.op_def.name != "NoOp" for n in inside)
        op_def = OpDef("Frame", "inputs: T", "outputs: T", "T: list(type)", stateful=stateful)
        return Node(loop.enters[0].op, op_def, inputs, outputs, (), {"touched": touched})

    def _inputs(self, node: Node) -> tuple[int, ...]:
        """What ``node`` waits for in its own iteration."""
        if node.op_def.name not in MERGES:
            return node.inputs
        back = {
            value
            for value in node.inputs
            if value in self._producers and self._producers[value].op_def.name in NEXT_ITERATIONS
        }
        return tuple([value for value in node.inputs if value not in back])

    def placed_like(self, new: Node) -> Node:
        """The node of the step that says where ``new`` is."""
        item = self.original[new]
        return item.enters[0] if isinstance(item, Frame) else item
