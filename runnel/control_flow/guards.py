"""Guards: the branches in which an operation is, found in the graph.

A value on a branch that was not taken is dead. Where that happens is written in the graph: behind
``Switch``, until ``Merge``. So it is known for every operation, whoever made it: ``tf.cond``, a
gradient, or an imported GraphDef. Guards hold within one frame: a loop in a branch runs or does
not, and inside it nothing is dead on account of that branch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from runnel.graph.operation import Operation, Tensor
from runnel.ops.control_flow import ENTERS, EXITS, MERGES, SWITCHES, is_loop_merge

_IDENTITIES = frozenset({"Identity", "RefIdentity"})


@dataclass(frozen=True, slots=True)
class Guard:
    """Alive when ``pred`` is true (``side`` 1) or false (0); ``key`` is what ``pred`` copies."""

    key: Tensor
    side: int
    pred: Tensor = field(compare=False)

    @property
    def is_loop(self) -> bool:
        """True when it says that the loop goes on, which holds for everything in its body."""
        return self.pred.op.op_def.name == "LoopCond"


Guards = tuple[Guard, ...]
"""Outermost first."""


class GuardAnalysis:
    """The guards of the operations of a graph, found when they are asked for."""

    def __init__(self) -> None:
        self._of: dict[Operation, Guards] = {}

    def of(self, tensor: Tensor) -> Guards:
        """When ``tensor`` is alive."""
        op = tensor.op
        found = self.of_operation(op)
        if op.op_def.name not in SWITCHES:
            return found
        pred = op.inputs[1]
        return _union([found, (Guard(original(pred), tensor.value_index, pred),)])

    def of_operation(self, op: Operation) -> Guards:
        """When ``op`` runs."""
        found = self._of.get(op)
        if found is None:
            self._find(op)
            found = self._of[op]
        return found

    def in_branches(self, tensor: Tensor) -> Guards:
        """When ``tensor`` is alive, given that the iteration in which it is runs."""
        return tuple([guard for guard in self.of(tensor) if not guard.is_loop])

    def missing(self, tensor: Tensor, guards: Guards) -> Guards:
        """Those of ``guards`` that do not hold whenever ``tensor`` is alive."""
        present = self.of(tensor)
        return tuple([guard for guard in guards if guard not in present])

    def _find(self, op: Operation) -> None:
        stack = [op]
        while stack:
            current = stack[-1]
            if current in self._of:
                stack.pop()
                continue
            data, controls = _awaited(current)
            missing = [t.op for t in data if t.op not in self._of]
            missing += [c for c in controls if c not in self._of]
            if missing:
                stack += missing
                continue
            stack.pop()
            guards = [self.of(tensor) for tensor in data]
            if guards and current.op_def.name in MERGES:
                self._of[current] = _common(guards)
            else:
                self._of[current] = _union([*guards, *(self._of[c] for c in controls)])


def _awaited(op: Operation) -> tuple[list[Tensor], list[Operation]]:
    """What is alive whenever the outputs of ``op`` are."""
    kind = op.op_def.name
    if kind in ENTERS or kind == "ControlTrigger" or is_loop_merge(op):
        return [], []  # a frame of its own; or runs in any case
    if kind in EXITS:
        enters = _enters_of(op)
        controls = [control for enter in enters for control in enter.control_inputs]
        return [enter.inputs[0] for enter in enters], controls
    if kind in MERGES:
        return list(op.inputs), []
    return list(op.inputs), list(op.control_inputs)


def _enters_of(exit_op: Operation) -> list[Operation]:
    """What brings the variables of a loop into it: if one is dead, the loop does not run."""
    context = exit_op.control_flow_context
    if context is not None and context.GetWhileContext() is not None:
        return [tensor.op for tensor in context.GetWhileContext().loop_enters]
    return []


def original(pred: Tensor) -> Tensor:
    """The tensor of which ``pred`` is a copy: itself, unless it was passed on."""
    while True:
        op = pred.op
        kind = op.op_def.name
        copies = kind in _IDENTITIES or (kind in ENTERS and op.attrs["is_constant"])
        if not copies or op.inputs[0].dtype.is_ref_dtype:
            return pred
        pred = op.inputs[0]


def _union(several: Iterable[Guards]) -> Guards:
    found: dict[Guard, None] = {}
    for guards in sorted(several, key=len, reverse=True):
        found.update(dict.fromkeys(guards))
    return tuple(found)


def _common(several: list[Guards]) -> Guards:
    first, *others = several
    return tuple([guard for guard in first if all(guard in guards for guards in others)])
