"""Groups the nodes of a step's outermost frame that belong to one conditional.

Two nodes are in one group when one takes or awaits the other and both depend on a predicate, taken
either way. So each conditional is in one group with its gradient and with the conditionals nested
in it. Two that only share a predicate are in two groups: one may run dynamically while the other is
compiled.
"""

from __future__ import annotations

from collections.abc import Iterable

from runnel.ops.control_flow import ENTERS, EXITS, SWITCHES
from runnel.passes.program.program import Node, Program
from runnel.passes.structure.frames import Frame, Frames
from runnel.passes.structure.liveness import Liveness


class BranchGroups:
    """The group of each node that depends on a predicate, by one of its nodes."""

    def __init__(self, program: Program, frames: Frames, liveness: Liveness) -> None:
        self._liveness = liveness
        self._leader: dict[Node, Node] = {}
        producers = program.producers()
        entries: dict[Frame, list[Node]] = {}
        for node in program.nodes:
            if node.op_def.name in ENTERS and frames.runs_in[node] is frames.outermost:
                entries.setdefault(frames.leads_to[node], []).append(node)
        for node in program.nodes:
            inside = frames.runs_in[node]
            if inside is frames.outermost:
                sources = [producers[value] for value in node.inputs if value in producers]
                self._join(node, (*sources, *node.control))
            elif inside.parent is frames.outermost and node.op_def.name in EXITS:
                self._join(node, entries[inside])

    def _predicates(self, node: Node) -> set[object]:
        """What ``node`` depends on, and what it decides or ends."""
        liveness = self._liveness
        found: set[object] = {predicate for predicate, _ in liveness.of[node]}
        if node.op_def.name in EXITS or node.op_def.name in SWITCHES:
            found.update(predicate for predicate, _ in liveness.of_value(node.outputs[0]))
        if node in liveness.merges:
            found.add(liveness.merges[node][0])
        return found

    def _join(self, node: Node, sources: Iterable[Node]) -> None:
        own = self._predicates(node)
        if not own:
            return
        self._leader.setdefault(node, node)
        for source in sources:
            if source in self._leader and not own.isdisjoint(self._predicates(source)):
                self._leader[self.of(source)] = self.of(node)

    def of(self, node: Node) -> Node:
        """The group of ``node``: itself where it depends on nothing."""
        leader = self._leader.get(node, node)
        while self._leader.get(leader, leader) is not leader:
            leader = self._leader[leader]
        return leader

    def deciding(self, predicate: int) -> set[Node]:
        """The groups in which ``predicate`` decides."""
        return {self.of(node) for node in self._leader if predicate in self._predicates(node)}

    def holding(self, nodes: Iterable[Node]) -> set[Node]:
        """The groups that have the operations of ``nodes``."""
        ops = {node.op for node in nodes}
        return {self.of(node) for node in self._leader if node.op in ops}
