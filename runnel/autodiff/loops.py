"""Loops, as the backward walk sees them: each is one operation.

Its inputs are the tensors that enter it, its outputs those that leave it. A loop that pushes values
onto stacks comes before the loop that pops them, as a producer comes before its consumer.
``runnel.autodiff.loop_gradient`` makes the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runnel.autodiff.differentiation import guards_of
from runnel.autodiff.handles import made_by, stack_of
from runnel.autodiff.loop_record import record_of, records_of
from runnel.control_flow.context import contains
from runnel.control_flow.guards import Guards
from runnel.control_flow.while_context import WhileContext
from runnel.graph.dtypes import DType
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor


def is_trainable(dtype: DType) -> bool:
    """True when a gradient can flow through values of this type."""
    base = dtype.base_dtype
    return base.is_floating or base.is_complex or base.name in ("resource", "variant")


def is_differentiable(tensor: Tensor) -> bool:
    """True for numbers, and for what denotes some: a variable, a stack or a list of values."""
    dtype = tensor.dtype.base_dtype
    if dtype.name == "resource":
        maker = made_by(tensor)
        if maker.op_def.name == "StackV2":
            elements = maker.attrs["elem_type"]
            return elements.is_floating or elements.is_complex
        return maker.op_def.variable
    return dtype.is_floating or dtype.is_complex or dtype.name == "variant"


class LoopLevel:
    """How a walk sees the graph from inside the loop ``base`` (None: from outside all loops).

    Loops directly inside are single operations; ``boundary`` holds the tensors at which the body
    begins, behind which the walk does not look.
    """

    def __init__(self, base: Any = None, boundary: Iterable[Tensor] = ()) -> None:
        self._boundary = frozenset(boundary)
        self._loops: dict[WhileContext, WalkedLoop] = {}
        self._around: set[Any] = set()
        """The contexts in which ``base`` is."""
        self._base = base
        while base is not None:
            self._around.add(base)
            base = base.outer_context

    @classmethod
    def current(cls, graph: Graph) -> LoopLevel:
        """The level of the operations that are being made now."""
        context = graph._get_control_flow_context()
        base = context.GetWhileContext() if context is not None else None
        if base is None:
            return cls()
        starts = [t for v in base.variables for t in (v.merged, v.start) if t is not None]
        return cls(base, starts)

    def producer(self, tensor: Tensor) -> Operation | WalkedLoop:
        """What makes ``tensor``: an operation of this level, or a loop.

        A stack is made by the loop that pushes to it.
        """
        if tensor.dtype.name == "resource":
            stack = stack_of(tensor)
            pushing = None if stack is None else records_of(tensor.graph).pushing_to(stack)
            loop = None if pushing is None else self._loop_around(pushing)
            if loop is not None and loop.reachable:
                return loop
        return self._loop_around(tensor.op.control_flow_context) or tensor.op

    def _loop_around(self, context: Any) -> WalkedLoop | None:
        """The outermost loop around ``context`` that is inside this level."""
        found: WhileContext | None = None
        while context is not None and context not in self._around:
            if isinstance(context, WhileContext):
                found = context
            context = context.outer_context
        if found is None:
            return None
        if found not in self._loops:
            self._loops[found] = WalkedLoop(found, reachable=context is self._base)
        return self._loops[found]

    def loop(self, context: WhileContext) -> WalkedLoop:
        """The loop of this level in which ``context`` is."""
        found = self._loop_around(context)
        assert found is not None
        return found

    def producers(self, tensors: Iterable[Tensor]) -> Iterator[Any]:
        """The producers of ``tensors`` that are not behind the boundary."""
        for tensor in tensors:
            producer = self.producer(tensor)
            if isinstance(producer, WalkedLoop) or tensor not in self._boundary:
                yield producer


class WalkedLoop:
    """A loop, as one operation of a backward walk."""

    def __init__(self, context: WhileContext, reachable: bool = True) -> None:
        self.context = context
        self.variables = context.variables
        # What it pushes is no input, although the stack comes from outside.
        self.invariants = [t for t in context.invariants if not self._pushes_to(stack_of(t))]
        self.outputs = [*context.loop_exits, *context.stray_exits]
        """The variables that leave the loop."""
        self.inputs = [v.enter.op.inputs[0] for v in self.variables]
        """What the variables begin as, then what stands behind the invariants."""
        self.inputs += [t.op.inputs[0] for t in self.invariants]
        self.id = max((tensor.op.id for tensor in self.outputs), default=-1)
        self.reachable = reachable
        stacks = (stack_of(tensor) for tensor in self.invariants)
        self.popped = [stack for stack in stacks if stack is not None]
        """The stacks from which it, or a loop in it, pops."""

    @property
    def name(self) -> str:
        return self.context.name

    def _pushes_to(self, stack: Tensor | None) -> bool:
        if stack is None:
            return False
        return contains(self.context, records_of(stack.graph).pushing_to(stack))

    def guards(self) -> Guards:
        """The branches in which the loop is."""
        if not self.outputs:
            return ()
        return guards_of(self.context.graph).in_branches(self.outputs[0])

    def pushes(self, deep: bool = False) -> Iterator[Operation]:
        """What keeps values of its body; with ``deep``, also of the loops in it."""
        stack = [self.context]
        while stack:
            context = stack.pop()
            yield from record_of(context).pushes
            if deep:
                stack += context.inner_loops

    def receives(self, gradients: Any) -> bool:
        """True when there are gradients for what the loop, or one in it, has pushed."""
        return any(stack_of(push.inputs[0]) in gradients for push in self.pushes(deep=True))

    def level(self) -> LoopLevel:
        """Inside the loop, an iteration of it."""
        starts = [t for v in self.variables for t in (v.start, v.merged) if t is not None]
        return LoopLevel(self.context, [*starts, *self.invariants])

    def require_differentiable(self) -> None:
        """An error that says why the loop has no gradient here."""
        stray = self.context.pivot is None or self.context.stray_exits
        if stray or any(len(v.merged.op.inputs) != 2 or v.switch is None for v in self.variables):
            raise LookupError(
                f"The loop {self.name!r} is not of the form that tf.while_loop builds (a LoopCond, "
                "and Enter, Merge, Switch, NextIteration for each variable); it has no gradient"
            )
        if not self.reachable:
            raise LookupError(
                f"A gradient that is taken inside a loop cannot go through the loop {self.name!r} "
                "outside it, whose history would be used up in the first iteration. Take the "
                "gradient of that loop outside, and use it inside; or cut the path with "
                "tf.stop_gradient."
            )


def dependencies(level: LoopLevel, targets: Sequence[Tensor]) -> set[Tensor]:
    """The tensors, up to the boundary of ``level``, on which ``targets`` depend differentiably."""
    found: set[Tensor] = set()
    stack = [t for t in targets if is_trainable(t.dtype)]
    seen: set[Any] = set()
    while stack:
        tensor = stack.pop()
        if tensor in found:
            continue
        found.add(tensor)
        for producer in level.producers([tensor]):
            if producer not in seen:
                seen.add(producer)
                stack += [t for t in producer.inputs if is_trainable(t.dtype)]
    return found
