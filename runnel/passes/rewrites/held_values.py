"""The stacks and TensorArrays of a step, in loops and branches too, and who touches each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from runnel.passes.program.program import Node, Program
from runnel.passes.program.step_resources import MAKERS
from runnel.passes.structure.structured import Conditional, Dynamic, Loop, structure_of

Scope = tuple[Node, ...]
"""The loops around something, the outermost first."""
Holder = tuple[Any, ...]
"""A stack or a TensorArray: the value that its handle was first; with the name of a gradient after
that, the array of its gradients."""

READS = frozenset({"TensorArrayReadV3", "TensorArrayGatherV3", "TensorArraySizeV3", "StackPopV2"})
WRITES = frozenset({"TensorArrayWriteV3", "TensorArrayScatterV3", "StackPushV2"})
_HARMLESS = READS | WRITES | {"TensorArrayCloseV3", "StackCloseV2"}


class HeldValues:
    """Who holds values in a step, and which nodes put them there or take them."""

    def __init__(self, program: Program) -> None:
        self.of: dict[int, Holder] = {}
        self.touching: dict[Holder, list[Node]] = {}
        self.scope: dict[Holder, Scope] = {}
        self.lost: set[Holder] = set()
        """Those of which not everything that touches them is known."""
        self._find(program, ())

    def _find(self, program: Program, scope: Scope) -> None:
        for node in program.nodes:
            structure = structure_of(node)
            if isinstance(structure, Loop):
                count = len(structure.variables)
                self._lose(node.inputs[:count])
                self._enter(structure.invariants, node.inputs[count:])
                for inner in structure.programs:
                    self._find(inner, (*scope, node))
                    self._lose(inner.fetches)
            elif isinstance(structure, Conditional):
                self._enter(structure.parameters, node.inputs[1:])
                for inner in structure.programs:
                    self._find(inner, scope)
                    self._lose(inner.fetches)
            elif self.of or node.op_def.name in MAKERS:
                self._note(node, structure, scope)
        if scope == ():
            self._lose(program.fetches)

    def _enter(self, inside: Sequence[int], outside: Sequence[int]) -> None:
        for value, given in zip(inside, outside, strict=True):
            if given in self.of:
                self.of[value] = self.of[given]

    def _lose(self, values: Iterable[int | None]) -> None:
        self.lost.update(self.of[value] for value in values if value in self.of)

    def _note(self, node: Node, structure: Dynamic | None, scope: Scope) -> None:
        kind = node.op_def.name
        if kind in MAKERS:
            holder: Holder = (node.outputs[0],)
            self.of[node.outputs[0]] = holder
            self.scope[holder] = scope
            return
        held = [self.of[value] for value in node.inputs if value in self.of]
        for holder in held:
            self.touching.setdefault(holder, []).append(node)
        if structure is not None or len(held) > 1:
            self.lost.update(held)
        elif held and kind == "TensorArrayGradV3":
            holder = (*held[0], node.attrs["source"])
            self.of[node.outputs[0]] = holder
            self.scope[holder] = self.scope[held[0]]
        elif held and kind == "Identity":
            self.of[node.outputs[0]] = held[0]
        elif held and kind not in _HARMLESS:
            self.lost.update(held)

    def touched_by(self, holder: Holder, kinds: Iterable[str]) -> list[Node] | None:
        """The nodes of these ``kinds`` that touch ``holder``; None if there may be others."""
        if any(holder[:length] in self.lost for length in range(1, len(holder) + 1)):
            return None
        return [node for node in self.touching.get(holder, ()) if node.op_def.name in kinds]
