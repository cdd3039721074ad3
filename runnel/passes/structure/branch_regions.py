"""The branches of a frame: on which predicates, taken which way, each of its nodes depends."""

from __future__ import annotations

from runnel.passes.program.program import Node
from runnel.passes.structure.raise_items import Item, NotWellFormed, Raising, Status


def joined(one: Status, other: Status, node: Node) -> Status:
    """The branches in which something runs that needs values of both."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if longer[: len(shorter)] != shorter:
        raise NotWellFormed(f"{node.op.name!r} takes values of branches that exclude each other")
    return longer


class Regions:
    """The status of each value and node of a frame, in the order in which they begin.

    What passes values on is taken out: a ``Switch`` becomes nothing, a ``Merge`` the end of the
    conditional that :mod:`runnel.passes.structure.raise_conditionals` finds.
    """

    def __init__(self, raising: Raising) -> None:
        self._raising = raising
        self._of_value: dict[int, Status] = {}
        self._of_node: dict[Node, Status] = {}
        self.merges: dict[Item, tuple[int, int, int]] = {}
        """For each Merge: its predicate, and its values when that is false and true."""

    def status_of(self, node: Node) -> Status:
        """Where ``node`` runs, from what it takes and what it waits for."""
        found: Status = ()
        for value in node.inputs:
            found = joined(found, self.value_status(value), node)
        for control in node.control:
            found = joined(found, self._of_node.get(control, ()), node)
        return found

    def value_status(self, value: int) -> Status:
        return self._of_value.get(value, ())

    def note(self, node: Node, status: Status) -> None:
        """``node`` runs in these branches, and so its outputs are there."""
        if status:
            self._of_node[node] = status
            for value in node.outputs:
                self._of_value[value] = status

    def add_switch(self, node: Node) -> None:
        """Sees through a Switch."""
        base = self.status_of(node)
        if base:
            self._of_node[node] = base
        predicate = self._raising.predicate(node.inputs[1])
        for side, value in enumerate(node.outputs):
            self._of_value[value] = (*base, (predicate, side))
            self._raising.alias[value] = node.inputs[0]

    def add_merge(self, item: Item) -> None:
        """Notes the end of a conditional."""
        node = item.node
        seen = self._raising.seen_through
        if len(node.inputs) != 2:
            raise NotWellFormed(f"{node.op.name!r} merges other than two values")
        sides = [self.value_status(value) for value in node.inputs]
        if not all(sides) or sides[0][:-1] != sides[1][:-1]:
            raise NotWellFormed(f"{node.op.name!r} merges values of unrelated branches")
        (pred, one), (other_pred, other) = sides[0][-1], sides[1][-1]
        if pred != other_pred or {one, other} != {0, 1}:
            raise NotWellFormed(f"{node.op.name!r} merges values of unrelated branches")
        values = [seen(value) for value in node.inputs]
        if not self._raising.of_variable.isdisjoint(values):
            raise NotWellFormed(f"{node.op.name!r} merges references")
        if one == 1:
            values.reverse()
        self.merges[item] = (pred, values[0], values[1])
        item.decided_by = pred
        status = sides[0][:-1]
        for control in node.control:
            status = joined(status, self._of_node.get(control, ()), node)
        if status != sides[0][:-1]:
            raise NotWellFormed(f"{node.op.name!r} waits for a branch that it is not in")
        item.status = status
        self.note(node, status)
