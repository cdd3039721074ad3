"""A record for each loop of a graph: all that differentiation knows of it.

The loop that computes a gradient has a record too, since it may be differentiated in turn; its
record leads to that of the loop whose gradient it computes. A loop of an imported GraphDef gets its
record when the program first asks for a gradient. The graph keeps the records (``Graph.attached``),
and they die with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runnel.autodiff.handles import stack_of
from runnel.control_flow.context import output_context, while_context_of
from runnel.control_flow.recovery import recover_loops
from runnel.control_flow.while_context import WhileContext
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control_flow import control_trigger_op

_ARRAY_GRADIENTS = frozenset({"TensorArrayGradV3", "TensorArrayGradWithShape"})


@dataclass(slots=True, eq=False)
class Iterations:
    """The iterations of ``loop``: ``begin`` runs when one begins, and ``step`` ends it.

    Control edges tell an executor that runs iterations at the same time what belongs to one: the
    pushes, or pops, of an iteration come after its beginning and before its end.
    """

    loop: WhileContext
    begin: Operation
    step: Operation
    _sync: Operation | None = None

    def end_after(self, op: Operation, guarded: bool = False) -> None:
        """An iteration ends after ``op``; ``guarded``: or without it, if its branch is dead."""
        if not guarded and output_context(op) is self.loop:
            self.step._add_control_inputs([op])
            return
        if self._sync is None:
            with op.graph._scopes.override(control_inputs=(), control_flow_context=self.loop):
                self._sync = control_trigger_op(name="sync")
            self.step._add_control_inputs([self._sync])
        self._sync._add_control_inputs([op])


@dataclass(frozen=True, slots=True, eq=False)
class IterationCounter:
    """Counts the iterations of a loop for its gradients: ``count`` is there when it has ended."""

    count: Tensor
    iterations: Iterations


@dataclass(slots=True, eq=False)
class LoopRecord:
    """What differentiation knows of one loop."""

    loop: WhileContext
    counter: IterationCounter | None = None
    """Made when it is first differentiated."""
    pushes: list[Operation] = field(default_factory=list)
    """What keeps values of its body on stacks."""
    gradient_of: LoopRecord | None = None
    """The loop whose gradient it computes, if it does; the following are for such a loop."""
    backwards: Iterations | None = None
    """Its iterations, which count those of the other loop down; known when its body begins."""
    stand_ins: dict[Tensor, Tensor] = field(default_factory=dict)
    """What stands in it for values of the other loop."""


class LoopRecords:
    """The records of the loops of one graph."""

    def __init__(self) -> None:
        self._of: dict[WhileContext, LoopRecord] = {}
        self._pushing: dict[Tensor, LoopRecord] = {}
        """The loop that pushes to each stack."""
        self._seen = 0
        """The number of operations that :meth:`catch_up` has looked at."""
        self._array_gradients: set[str] = set()
        """The names under which gradients of TensorArrays are kept."""

    def of(self, loop: WhileContext) -> LoopRecord:
        """The record of ``loop``."""
        found = self._of.get(loop)
        return self._of.setdefault(loop, LoopRecord(loop)) if found is None else found

    def pushing_to(self, stack: Tensor) -> WhileContext | None:
        """The loop that pushes to ``stack``, if one does."""
        found = self._pushing.get(stack)
        return None if found is None else found.loop

    def note_push(self, loop: WhileContext, push: Operation) -> None:
        """Notes that ``loop`` keeps values by ``push``."""
        stack = stack_of(push.inputs[0])
        if stack is not None:
            record = self._pushing[stack] = self.of(loop)
            record.pushes.append(push)

    def catch_up(self, graph: Graph) -> None:
        """Takes note of what was added to ``graph`` since the last call: perhaps by an import."""
        with graph._lock:
            fresh = graph._ops[self._seen :]
            self._seen += len(fresh)
            for op in fresh:
                if op.op_def.name in _ARRAY_GRADIENTS:
                    self._array_gradients.add(op.attrs["source"])
            for op in recover_loops(graph, fresh):
                if op.op_def.name == "StackPushV2":
                    self.note_push(while_context_of(op), op)

    def name_for_array_gradients(self, name: str) -> str:
        """A name for the gradients of TensorArrays, like ``name``: no imported gradient has it."""
        while name in self._array_gradients:
            name += "_"
        return name


def records_of(graph: Graph) -> LoopRecords:
    """The records of the loops of ``graph``."""
    return graph.attached(LoopRecords)


def record_of(loop: WhileContext) -> LoopRecord:
    """The record of ``loop``."""
    return records_of(loop.graph).of(loop)
