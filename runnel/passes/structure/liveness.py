"""The conditions under which each node is alive, as far as the graph tells.

A node's *conditions* are those under which all its inputs are alive: a predicate has come out one
way, or something that only a run can tell. Nodes of one frame with the same conditions are all
alive in an iteration or all dead.

A frame is *regular* when it is a loop whose course follows from one predicate: its variables enter
alive together, they continue together to the next iteration when the predicate is true, and
everything leaves when it is false. Then the order in which the nodes of an iteration run is known
before it runs, unless one has to wait.

Raising puts nodes that are alive under known conditions into conditionals and loops
(``passes.structure.raise_control_flow``). Regions are cut and written by the same conditions
(``passes.clusters.frame_units``, ``runtime.dynamic.loop_code``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.ops.control_flow import ENTERS, EXITS, MERGES, NEXT_ITERATIONS, SWITCHES
from runnel.ops.send_recv import MAY_BE_DEAD
from runnel.passes.program.program import Node, Program
from runnel.passes.program.variable_reads import is_variable_read
from runnel.passes.structure.frames import Frame, Frames

Condition = tuple[Any, int]
"""A predicate's value number and the way it came out; or a node that tells when it runs, and a
negative number; or a value from outside, likewise."""
Conditions = frozenset[Condition]
ALWAYS: Conditions = frozenset()


class Liveness:
    """The conditions of every node, and the predicates of the frames that are regular."""

    def __init__(self, program: Program, frames: Frames, uncertain: Iterable[int] = ()) -> None:
        """``uncertain`` are the values from outside that may be dead."""
        self._frames = frames
        self._variables = frames.variables
        self._producers = program.producers()
        self._infos = program.infos
        self.of: dict[Node, Conditions] = {}
        """Conditions under which each node is alive, in an iteration of its frame."""
        self._of_value: dict[int, Conditions] = {
            value: frozenset({(("fed", value), -1)}) for value in uncertain
        }
        self._exits: dict[Frame, list[Node]] = {frame: [] for frame in frames.frames}
        for node, frame in frames.runs_in.items():
            if node.op_def.name in EXITS:
                self._exits[frame].append(node)
        self.predicate: dict[Frame, int] = {}
        """The value that decides whether a regular frame goes on."""
        self.may_wait = {frames.runs_in[n] for n in program.nodes if n.op_def.blocking}
        """Frames with blocking operations."""
        self._takers = program.takers()
        self.merges: dict[Node, tuple[int, int, int]] = {}
        """For what ends a conditional: its predicate, its inputs when that is false and true."""
        self._order: dict[int, int] = {}
        """Predicates, in the order in which a Switch takes each first."""
        self._visit_frame(frames.outermost)

    def of_value(self, value: int) -> Conditions:
        """The conditions under which ``value`` is alive, where it is used."""
        return self._of_value.get(value, ALWAYS)

    @property
    def predicates(self) -> list[int]:
        """The values outside of loops that decide something."""
        leads_to, outermost = self._frames.leads_to, self._frames.outermost
        producers = {value: self._producers.get(value) for value in self._order}
        return [v for v, p in producers.items() if p is None or leads_to[p] is outermost]

    def nested(self, conditions: Conditions, outermost: int | None = None) -> list[Condition]:
        """``conditions`` in an order in which conditionals can be nested, the outermost first.

        Whatever a predicate is computed from comes before it. A loop's own predicate,
        ``outermost``, comes before all.
        """
        first = -1 if outermost is None else outermost
        return sorted(conditions, key=lambda c: (c[0] != first, self._order[c[0]]))

    def decides(self, value: int) -> int:
        """The value that ``value``, a predicate, is a copy of."""
        while True:
            producer = self._producers.get(value)
            if producer is None or is_variable_read(producer):
                return value
            kind = producer.op_def.name
            copies = kind in ("Identity", "LoopCond") or kind in SWITCHES
            if kind in ENTERS:
                copies = bool(producer.attrs["is_constant"])
            if not copies or self._infos[producer.inputs[0]].dtype.is_ref_dtype:
                return value
            value = producer.inputs[0]

    def _may_change(self, predicate: int) -> bool:
        """True for the value of a variable that the step may write.

        Each that takes it reads it for itself.
        """
        producer = self._producers.get(predicate)
        if producer is None:
            return False
        if self._infos[predicate].dtype.is_ref_dtype:
            return True
        if not is_variable_read(producer):
            return False
        return not all(map(is_variable_read, self._takers[producer.inputs[0]]))

    # Frames ---------------------------------------------------------------------------------

    def _visit_frame(self, frame: Frame) -> None:
        for item in frame.items:
            if isinstance(item, Frame):
                self._visit_child(item)
            else:
                self._visit(item)

    def _visit_child(self, child: Frame) -> None:
        self.predicate.pop(child, None)
        conditions = ALWAYS.union(*(self.of[enter] for enter in child.enters))
        together = self._runs_under(child, conditions)
        if together:
            self._begin(child, together)
            self._visit_frame(child)
            together = self._goes_on_together(child)
        if not together:
            self._begin(child, together)
            self._visit_frame(child)
        regular = together and self._is_regular(child)
        for node in self._exits[child]:
            self._of_value[node.outputs[0]] = conditions if regular else frozenset({(node, -1)})

    def _runs_under(self, child: Frame, conditions: Conditions) -> bool:
        """True when ``child`` runs if all that enters it is alive, and otherwise not at all."""
        variables = [enter for enter in child.enters if not enter.attrs["is_constant"]]
        if any(side < 0 for enter in variables for _, side in self.of[enter]):
            return False
        if all(self.of[enter] == conditions for enter in variables):
            return True
        # What enters dead keeps the loop from running where the predicate is made of it.
        wanted = [
            value
            for item in child.items
            if isinstance(item, Node) and item.op_def.name == "LoopCond"
            for value in item.inputs
        ]
        seen: set[int] = set()
        deciding = ALWAYS
        while wanted:
            value = wanted.pop()
            producer = self._producers.get(value)
            if value in seen or producer is None or producer.op_def.name in NEXT_ITERATIONS:
                continue
            seen.add(value)
            if producer.op_def.name in ENTERS:
                deciding |= self.of[producer]
            else:
                wanted += producer.inputs
        return deciding == conditions

    def _begin(self, child: Frame, together: bool) -> None:
        """Notes the values that an iteration begins with."""
        for enter in child.enters:
            self._of_value[enter.outputs[0]] = ALWAYS if together else frozenset({(enter, -1)})
        for item in child.items:
            if item in self._variables:
                conditions = ALWAYS if together else frozenset({(item, -1)})
                self._note(item, conditions)

    def _goes_on_together(self, child: Frame) -> bool:
        """True when all variables of a loop go on to the next iteration, or none."""
        for enter in child.enters:
            takers = self._takers.get(enter.outputs[0], [])
            if not enter.attrs["is_constant"] and not self._variables.issuperset(takers):
                return False  # it is there in the first iteration only
        going_on = set()
        for item in child.items:
            if not isinstance(item, Node):
                continue
            if item.op_def.name in NEXT_ITERATIONS:
                going_on.add(self.of[item])
            elif item in self._variables:
                kinds = sorted(p.op_def.name in NEXT_ITERATIONS for p in self._sources(item))
                if kinds != [False, True]:
                    return False
        return len(going_on) <= 1

    def _is_regular(self, child: Frame) -> bool:
        conditions: dict[int, None] = {}
        going_on = None
        for item in child.items:
            if isinstance(item, Frame):
                if item not in self.predicate:
                    return False
                continue
            if any(side < 0 for _, side in self.of[item]):
                return False
            if item.op_def.name == "LoopCond":
                conditions[self.decides(item.inputs[0])] = None
            elif item.op_def.name in NEXT_ITERATIONS:
                going_on = self.of[item]
            elif item.op_def.name in MERGES and item not in self._variables:
                if item not in self.merges:
                    return False
        if len(conditions) != 1:
            return False
        [predicate] = conditions
        if going_on != frozenset({(predicate, 1)}):
            return False
        left = frozenset({(predicate, 0)})
        if any(self.of[node] != left for node in self._exits[child]):
            return False
        self.predicate[child] = predicate
        return True

    # Nodes ----------------------------------------------------------------------------------

    def _sources(self, node: Node) -> list[Node]:
        return [self._producers[v] for v in node.inputs if v in self._producers]

    def _note(self, node: Node, conditions: Conditions) -> None:
        self.of[node] = conditions
        for value in node.outputs:
            self._of_value[value] = conditions

    def _visit(self, node: Node) -> None:
        kind = node.op_def.name
        if kind in MERGES:
            if node not in self._variables:
                self._note(node, self._merged(node))
            return
        if kind == "ControlTrigger":
            self._note(node, ALWAYS)
            return
        found = [self._of_value.get(value, ALWAYS) for value in node.inputs]
        found += [self.after(control) for control in node.control]
        conditions = ALWAYS.union(*found)
        if MAY_BE_DEAD in node.attrs:  # another part of the step decides
            conditions |= {(node, -1)}
        if kind in ENTERS or kind in EXITS:
            self.of[node] = conditions  # what they give is in another frame
        elif kind in SWITCHES:
            self.of[node] = conditions
            predicate = self.decides(node.inputs[1])
            self._order.setdefault(predicate, len(self._order))
            for side, value in enumerate(node.outputs):
                decided = (node, -1 - side) if self._may_change(predicate) else (predicate, side)
                self._of_value[value] = conditions | {decided}
        else:
            self._note(node, conditions)

    def after(self, control: Node) -> Conditions:
        """The conditions under which a node that waits for ``control`` runs."""
        if control.op_def.name in ENTERS or control.op_def.name in EXITS:
            return self._of_value.get(control.outputs[0], ALWAYS)
        return self.of.get(control, ALWAYS)

    def _merged(self, node: Node) -> Conditions:
        self.merges.pop(node, None)
        if len(node.inputs) == 2:
            sides = [self._of_value.get(value, ALWAYS) for value in node.inputs]
            for predicate, side in sides[0] - sides[1]:
                other = (predicate, 1 - side)
                common = sides[0] - {(predicate, side)}
                if side >= 0 and other in sides[1] and common == sides[1] - {other}:
                    one, two = node.inputs if side == 0 else reversed(node.inputs)
                    self.merges[node] = predicate, one, two
                    return common
        return frozenset({(node, -1)})
