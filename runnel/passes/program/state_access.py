"""The variable that each reference in a program denotes, and how each node touches it."""

from __future__ import annotations

from runnel.graph.operation import Operation
from runnel.graph.shapes import is_fully_defined
from runnel.passes.program.program import Node, Program


def variable_name(op: Operation) -> tuple[str, str]:
    """The container and the name, in a session, of the variable that ``op`` makes."""
    return op.attrs.get("container") or "", op.attrs.get("shared_name") or op.name


def requires_shape(node: Node) -> bool:
    """True when what ``node`` assigns must fit the variable: only a reference can be let off."""
    return not node.op_def.takes_reference or bool(node.attrs.get("validate_shape", True))


def keeps_shape(node: Node, variable: Operation) -> bool:
    """True when what ``node`` assigns to ``variable`` must have the shape that this declares."""
    return is_fully_defined(variable.attrs["shape"]._dims) and requires_shape(node)


class StateAccess:
    """The variables of a program, resolved before it runs.

    ``variable_of`` maps a value that is a reference or a resource handle to the operation that
    made the variable. ``handles`` holds the values that *are* the variable (reading one gives
    its value at that point); the output of an update, in contrast, is the value it left.
    """

    on_host: frozenset[Node] = frozenset()
    """Nodes that are not compiled although they could be."""

    def __init__(self, program: Program) -> None:
        self.variable_of: dict[int, Operation] = {}
        self.handles: set[int] = set()
        for node in program.nodes:
            if node.op_def.variable:
                self.variable_of[node.outputs[0]] = node.op
                self.handles.add(node.outputs[0])
            elif node.op_def.updates or node.op_def.overwrites:
                self._resolve_update(node, program)

    def _resolve_update(self, node: Node, program: Program) -> None:
        positions = (*node.op_def.updates, *node.op_def.overwrites)
        first = node.inputs[positions[0]]
        for output in node.outputs:
            if program.infos[output].dtype.is_ref_dtype:
                self.variable_of[output] = self.variable_of[first]

    def reads(self, node: Node) -> list[Operation]:
        """Variables whose present value ``node`` uses."""
        if "touched" in node.attrs:  # a structured node: what the programs inside it touch
            return list(node.attrs["touched"].reads)
        skipped = node.op_def.overwrites
        return [
            self.variable_of[value]
            for position, value in enumerate(node.inputs)
            if value in self.handles and position not in skipped
        ] + [
            self.variable_of[node.inputs[p]]
            for p in node.op_def.updates
            if node.inputs[p] not in self.handles
        ]

    def writes(self, node: Node) -> list[Operation]:
        """Variables that ``node`` replaces."""
        if "touched" in node.attrs:
            return list(node.attrs["touched"].writes)
        return [
            self.variable_of[node.inputs[p]]
            for p in (*node.op_def.updates, *node.op_def.overwrites)
        ]

    def touches(self, node: Node) -> bool:
        """True when ``node`` may read or replace state."""
        return node.op_def.stateful or not self.handles.isdisjoint(node.inputs)

    def stays_on_host(self, node: Node) -> bool:
        """True for what is not to be compiled."""
        return node in self.on_host
