"""What TensorFlow must be told of the order of a training step: reads come before updates.

Here a step's operations take effect in the order of construction. TensorFlow starts whatever has
its inputs, and a reference variable that it updates changes under those who have yet to read it. So
a graph that is written for it says which updates wait for which reads, by control inputs.

They make no step do more than it did: an update waits only for what the training operation needs
anyway, and for nothing that has an effect which the update did not wait for already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runnel.control_flow.context import while_context_of_output
from runnel.control_flow.guards import GuardAnalysis
from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor

_VIEWS = frozenset(
    ("Identity", "IdentityN", "Reshape", "Squeeze", "ExpandDims", "StopGradient", "Bitcast")
    + ("PreventGradient", "CheckNumerics", "EnsureShape", "Slice", "StridedSlice", "Split")
    + ("SplitV", "Unpack", "Pack", "Concat", "ConcatV2", "Cast", "Transpose", "Tile", "Pad")
    + ("PadV2", "Reverse", "ReverseV2", "BroadcastTo", "AddN", "Sum", "Mean", "Max", "Min")
    + ("Print", "PrintV2", "PlaceholderWithDefault", "Snapshot", "Where", "Fill", "Switch")
    + ("Merge", "Enter", "Exit", "NextIteration", "RefIdentity", "RefSwitch", "RefMerge")
    + ("RefEnter", "RefExit", "RefNextIteration", "RefSelect", "GuaranteeConst")
)
"""Operations whose result may be the memory of what they take, in TensorFlow, and no copy of it."""

_PASSING_REFERENCES = frozenset({"RefIdentity", "RefSwitch", "RefEnter", "Switch", "Enter"})
"""Operations that give the reference which they take first."""

_OF_ONE_STEP = ("Stack", "TensorArray")
"""How the names begin of operations whose effects end with the step."""


def reads_before_updates(graph: Graph) -> dict[Operation, list[Operation]]:
    """For each update of a reference variable, what it is to wait for beside its inputs."""
    if not any(_is_reference_variable(op) for op in graph.get_operations()):
        return {}
    found: dict[Operation, dict[Operation, None]] = {}
    guards = GuardAnalysis()
    for member in graph.get_collection(GraphKeys.TRAIN_OP):
        train_op = member.op if isinstance(member, Tensor) else member
        if isinstance(train_op, Operation) and train_op.graph is graph:
            for update, reads in _Step(train_op, guards).order():
                found.setdefault(update, {}).update(dict.fromkeys(reads))
    return {update: list(reads) for update, reads in found.items()}


def add_reading_order(graph: Graph, graph_def: Any) -> None:
    """Adds the order to ``graph_def``, in which ``graph`` is written."""
    order = {update.name: reads for update, reads in reads_before_updates(graph).items()}
    if not order:
        return
    for node in graph_def.node:
        for read in order.get(node.name, ()):
            if f"^{read.name}" not in node.input:
                node.input.append(f"^{read.name}")


def _is_reference_variable(op: Operation) -> bool:
    return op.op_def.variable and op.outputs[0].dtype.is_ref_dtype


def _has_effect(op: Operation) -> bool:
    """True for what is not to be run where it was not run before."""
    kind = op.op_def
    lasts = kind.stateful and not (kind.variable or kind.random)
    return lasts and not kind.name.startswith(_OF_ONE_STEP)


def _sources(op: Operation) -> Iterator[Operation]:
    yield from (tensor.op for tensor in op.inputs)
    yield from op.control_inputs


class _Step:
    """Everything that a training operation needs."""

    def __init__(self, train_op: Operation, guards: GuardAnalysis) -> None:
        self._guards = guards
        seen, queue = {train_op}, [train_op]
        for op in queue:
            for source in _sources(op):
                if source not in seen:
                    seen.add(source)
                    queue.append(source)
        self._ops = sorted(seen, key=lambda op: op.id)
        self._consumers: dict[Operation, list[Operation]] = {op: [] for op in self._ops}
        for op in self._ops:
            for source in dict.fromkeys(_sources(op)):
                self._consumers[source].append(op)
        self._updates = {op for op in self._ops if _updated(op) is not None}
        effects = [op for op in self._ops if _has_effect(op)]
        self._bit = {op: 1 << number for number, op in enumerate(effects)}

    def order(self) -> Iterator[tuple[Operation, list[Operation]]]:
        """Updates, each with reads that it does not wait for yet."""
        if not self._updates:
            return
        # Sets of operations with effects, as bits of numbers.
        before = self._gathered(self._ops, _sources)
        after = self._gathered(reversed(self._ops), lambda op: self._consumers[op])
        for variable, updates in self._by_variable().items():
            reads = self._reads(variable)
            for update in updates:
                if while_context_of_output(update) is not None:
                    continue
                waits: dict[Operation, None] = {}
                for read in reads:
                    for op in self._ends(read, update):
                        is_waited_for = after[op] & self._bit[update]
                        adds_effects = before[op] & ~before[update]
                        if op.id < update.id and not is_waited_for and not adds_effects:
                            waits[op] = None
                if waits:
                    yield update, list(waits)

    def _gathered(self, ops: Iterable[Operation], nexts: Any) -> dict[Operation, int]:
        """For each operation the effects of it and of all that ``nexts`` leads to."""
        found = {op: self._bit.get(op, 0) for op in self._ops}
        order = list(ops)
        changed = True
        while changed:  # again where a loop leads back
            changed = False
            for op in order:
                bits = found[op]
                for other in nexts(op):
                    bits |= found[other]
                if bits != found[op]:
                    found[op] = bits
                    changed = True
        return found

    def _by_variable(self) -> dict[Operation, list[Operation]]:
        found: dict[Operation, list[Operation]] = {}
        for update in sorted(self._updates, key=lambda op: op.id):
            variable = _denoted(_updated(update))
            if variable is not None:
                found.setdefault(variable, []).append(update)
        return found

    def _reads(self, variable: Operation) -> list[Operation]:
        """What reads the memory of ``variable``, whoever passes it on."""
        seen, queue = {variable}, [variable]
        reads: list[Operation] = []
        for op in queue:
            for consumer in self._consumers[op]:
                if consumer in seen or not any(tensor.op is op for tensor in consumer.inputs):
                    continue
                seen.add(consumer)
                reads.append(consumer)
                if consumer.op_def.name in _VIEWS or consumer in self._updates:
                    queue.append(consumer)
        return reads

    def _ends(self, read: Operation, update: Operation) -> list[Operation]:
        """What tells ``update`` that ``read`` is over: it, or what leaves its loop or branch."""
        allowed = set(self._guards.of_operation(update))
        seen, queue = {read}, [read]
        ends = []
        for op in queue:
            is_outside = while_context_of_output(op) is None
            if is_outside and allowed.issuperset(self._guards.of_operation(op)):
                ends.append(op)
                continue
            new = [consumer for consumer in self._consumers[op] if consumer not in seen]
            seen.update(new)
            queue += new
        return ends


def _updated(op: Operation) -> Tensor | None:
    """The reference whose variable ``op`` changes."""
    positions = (*op.op_def.updates, *op.op_def.overwrites)
    if not positions or not op.inputs[positions[0]].dtype.is_ref_dtype:
        return None
    return op.inputs[positions[0]]


def _denoted(reference: Tensor | None) -> Operation | None:
    """The variable that a reference denotes, where the graph says it."""
    while reference is not None:
        if _is_reference_variable(reference.op):
            return reference.op
        op = reference.op
        passes_on = op.op_def.name in _PASSING_REFERENCES
        reference = op.inputs[0] if passes_on else _updated(op)
    return None
