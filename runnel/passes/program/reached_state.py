"""The variables that each reference of a region may denote.

Where references pass through branches and loops, data decides which variable one denotes. This
module finds every variable from which a reference may have come.
"""

from __future__ import annotations

from collections.abc import Iterable

from runnel.graph.operation import Operation
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess
from runnel.passes.program.step_resources import RESOURCE_OPS
from runnel.passes.program.variable_reads import is_variable_read


class ReachedState(StateAccess):
    """State as a dynamic step touches it: the executor has it, and nodes take its values."""

    def __init__(self, program: Program) -> None:
        self.variable_of = {}
        self.handles = set()
        self.reached: dict[int, set[Operation]] = {}
        """The variables that each reference may denote."""
        changed = True
        while changed:  # references may go around loops: until nothing new is reached
            changed = False
            for node in program.nodes:
                arrived: set[Operation] = {node.op} if node.op_def.variable else set()
                for value in node.inputs:
                    arrived |= self.reached.get(value, set())
                for value in node.outputs if arrived else ():
                    dtype = program.infos[value].dtype
                    if dtype.is_ref_dtype or dtype.name == "resource" or is_variable_read(node):
                        known = self.reached.setdefault(value, set())
                        changed = changed or not arrived <= known
                        known |= arrived

    def reads(self, node: Node) -> list[Operation]:
        if "touched" in node.attrs:  # a whole loop
            return list(node.attrs["touched"].reads)
        return self._behind(node.inputs[p] for p in self._read_positions(node))

    def _read_positions(self, node: Node) -> list[int]:
        skipped = node.op_def.overwrites
        return [position for position in range(len(node.inputs)) if position not in skipped]

    def writes(self, node: Node) -> list[Operation]:
        if "touched" in node.attrs:
            return list(node.attrs["touched"].writes)
        return self._behind(node.inputs[p] for p in (*node.op_def.updates, *node.op_def.overwrites))

    def _behind(self, values: Iterable[int]) -> list[Operation]:
        found = [variable for value in values for variable in self.reached.get(value, ())]
        return list(dict.fromkeys(found))

    def touches(self, node: Node) -> bool:
        return node.op_def.stateful or any(value in self.reached for value in node.inputs)

    def stays_on_host(self, node: Node) -> bool:
        op_def = node.op_def
        if op_def.variable or op_def.updates or op_def.overwrites or op_def.blocking:
            return True
        return op_def.name in RESOURCE_OPS or is_variable_read(node)
