"""Cuts the loops and branches of a step into parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runnel.graph.errors import UnimplementedError
from runnel.ops.control_flow import ENTERS, EXITS
from runnel.passes.program.program import Node, Program
from runnel.passes.structure.frames import Frame, Frames
from runnel.passes.structure.liveness import Liveness


def _begin(frame: Frame) -> Iterator[Node]:
    for item in frame.items:
        if isinstance(item, Frame):
            yield from item.enters  # not before: what they take may come from different parts
            yield from _begin(item)
        elif item.op_def.name not in ENTERS:
            yield item


class PartitionFrames:
    """The frames of a program, those that have nodes in several parts, and what may be dead."""

    def __init__(self, program: Program, part_of: Mapping[Node, str]) -> None:
        frames = Frames(program)
        self._liveness = Liveness(program, frames)
        self.order = list(_begin(frames.outermost))
        """The nodes in the order in which they begin: a loop when all that enters it is there."""
        self.runs_in, self.leads_to = frames.runs_in, frames.leads_to
        self._condition: dict[Frame, Node] = {}
        self.variables = frames.variables
        self._parts: dict[Frame, set[str]] = {frame: set() for frame in frames.frames}
        producers = program.producers()
        for node in program.nodes:
            if node.op_def.name == "LoopCond":
                self._condition[frames.runs_in[node]] = node
            for end in (frames.runs_in[node], frames.leads_to[node]):
                inside: Frame | None = end
                while inside is not None:
                    self._parts[inside].add(part_of[node])
                    inside = inside.parent
            if node in frames.variables:
                if any(part_of[producers[value]] != part_of[node] for value in node.inputs):
                    raise self._refused(node, "is apart from its Enter or NextIteration")

    def is_cut(self, frame: Frame) -> bool:
        """True for a loop that has something in several parts."""
        return frame.parent is not None and len(self._parts[frame]) > 1

    def condition(self, frame: Frame) -> Node:
        """What says whether ``frame`` goes on."""
        if frame not in self._condition:
            raise self._refused(frame.enters[0], "enters it, but it has no LoopCond")
        return self._condition[frame]

    def may_be_dead(self, node: Node, value: int | None) -> bool:
        """True when ``value``, or else that ``node`` has run, may lie on a branch not taken."""
        if value is None and node.op_def.name in (*ENTERS, *EXITS):
            value = node.outputs[0]
        of = self._liveness.of[node] if value is None else self._liveness.of_value(value)
        frame: Frame | None = self.leads_to[node]
        while not of and frame is not None:
            of = of.union(*(self._liveness.of[enter] for enter in frame.enters))
            frame = frame.parent
        return bool(of)

    def _refused(self, node: Node, why: str) -> UnimplementedError:
        return UnimplementedError(
            None,
            node.op,
            f"The loop {self.leads_to[node].name!r} cannot be cut into parts so: "
            f"{node.op.name!r} {why}. Put the loop on one task",
        )
