"""The gradient of a loop: another loop, which runs through the iterations backwards.

To the backward walk a loop is one operation: its inputs are the tensors that enter it, its outputs
those that leave it. Its gradient is a loop with a variable for the gradient of each loop variable
and a sum for the gradient of each tensor from outside. In each iteration a walk through the body
takes the first from the end of the iteration to its beginning. The values of the body that the
walk's operations need are kept on stacks (``runnel.control_flow.loop_history``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from runnel.control_flow.loop_history import GradState, iteration_count
from runnel.control_flow.while_context import WhileContext
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import Graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import is_fully_defined

Walk = Callable[[Sequence[Tensor], Sequence[Any], Sequence[Tensor], "LoopLevel"], list[Any]]


def _is_differentiable(tensor: Tensor) -> bool:
    dtype = tensor.dtype.base_dtype
    if dtype.name == "resource":
        return _made_by(tensor).op_def.variable
    return dtype.is_floating or dtype.is_complex


def _made_by(handle: Tensor) -> Operation:
    """The operation that made a handle which control flow has passed on."""
    while handle.op.op_def.name in ("Enter", "Switch"):
        handle = handle.op.inputs[0]
    return handle.op


class LoopLevel:
    """How a walk sees the graph from inside the loop ``base`` (None: from outside all loops).

    Loops directly inside are single operations; ``boundary`` holds the tensors at which the body
    begins, behind which the walk does not look.
    """

    def __init__(self, base: Any = None, boundary: Iterable[Tensor] = ()) -> None:
        self._base = base
        self._boundary = frozenset(boundary)
        self._loops: dict[WhileContext, Loop] = {}

    @classmethod
    def current(cls, graph: Graph) -> LoopLevel:
        """The level of the operations that are being made now."""
        context = graph._get_control_flow_context()
        base = context.GetWhileContext() if context is not None else None
        if base is None:
            return cls()
        variables = [exit_tensor.op.inputs[0].op for exit_tensor in base.loop_exits]
        return cls(base, [switch.outputs[1] for switch in variables])

    def producer(self, tensor: Tensor) -> Operation | Loop:
        """What makes ``tensor``: an operation of this level, or a loop."""
        op = tensor.op
        context = op.control_flow_context
        if context is None:
            return op
        found: WhileContext | None = None
        while context is not None and context is not self._base:
            if isinstance(context, WhileContext):
                found = context
            context = context.outer_context
        if found is None or (self._base is not None and context is None):
            return op
        if found not in self._loops:
            self._loops[found] = Loop(found)
        return self._loops[found]

    def producers(self, tensors: Iterable[Tensor]) -> list[Any]:
        """The producers of ``tensors`` that are not behind the boundary."""
        return [self.producer(t) for t in tensors if t not in self._boundary]


class Loop:
    """A loop, as one operation of a backward walk."""

    def __init__(self, context: WhileContext) -> None:
        self.context = context
        self.outputs = list(context.loop_exits)
        self.switches = [tensor.op.inputs[0].op for tensor in self.outputs]
        self.merges = [op.inputs[0] for op in self.switches]
        self.enters = [tensor.op.inputs[0] for tensor in self.merges]
        self.invariants = [
            inside
            for inside in dict.fromkeys(context._external_values.values())
            if inside.op.op_def.name in ("Enter", "RefEnter") and inside.op.attrs["is_constant"]
        ]
        self.inputs = [t.op.inputs[0] for t in (*self.enters, *self.invariants)]
        self.id = max(tensor.op.id for tensor in self.outputs)

    @property
    def name(self) -> str:
        return self.context.name

    def gradients(self, exit_grads: Sequence[Any], leads: Sequence[bool], walk: Walk) -> list[Any]:
        """The gradient for each of ``inputs``, given those of ``outputs``.

        ``leads`` says which inputs depend on what is differentiated by.
        """
        if not self.context.back_prop:
            return [None] * len(self.inputs)
        if self.context.grad_state is not None:
            raise LookupError(
                f"The loop {self.context.name!r} computes the gradient of another loop, and the "
                "gradient of such a loop (a second derivative) is not supported; unroll the loop "
                "where its number of iterations is known"
            )
        count = len(self.enters)
        results = [merged.op.inputs[1].op.inputs[0] for merged in self.merges]
        active = self._active(results, exit_grads)
        sums = [
            i
            for i, tensor in enumerate(self.invariants)
            if leads[count + i] and _is_differentiable(tensor)
        ]
        found: list[Any] = [None] * len(self.inputs)
        if not active:
            return found
        loop = _GradientLoop(self, results, active, sums, walk)
        with name_scope(f"{self.context.name}_grad"):
            values = loop.build(exit_grads)
        for k, value in zip(active, values, strict=False):
            found[k] = value
        for i, value, reached in zip(sums, values[len(active) :], loop.reached, strict=True):
            found[count + i] = value if reached else None
        return found

    def _active(self, results: list[Tensor], exit_grads: Sequence[Any]) -> list[int]:
        """The loop variables that receive a gradient, at the end or through another one."""
        starts = {}
        for k, (switch, merged) in enumerate(zip(self.switches, self.merges, strict=True)):
            starts[switch.outputs[1]] = starts[merged] = k
        level = LoopLevel(self.context, starts)
        active = {k for k, grad in enumerate(exit_grads) if grad is not None}
        queue = list(active)
        seen: set[Any] = set()
        while queue:
            stack = [results[queue.pop()]]
            while stack:
                tensor = stack.pop()
                if tensor in starts:
                    k = starts[tensor]
                    if k not in active and _is_differentiable(tensor):
                        active.add(k)
                        queue.append(k)
                    continue
                producer = level.producer(tensor)
                if producer not in seen and tensor not in self.invariants:
                    seen.add(producer)
                    stack += producer.inputs
        return sorted(active)


class _GradientLoop:
    """The construction of the gradient of one loop."""

    def __init__(
        self, loop: Loop, results: list[Tensor], active: list[int], sums: list[int], walk: Walk
    ) -> None:
        self.loop = loop
        self.results = results
        self.active = active
        self.sums = sums
        self.walk = walk
        self.state: GradState
        self.reached: list[bool] = []
        """Which of the tensors from outside a gradient has reached."""

    def build(self, exit_grads: Sequence[Any]) -> list[Tensor]:
        """The gradients as they leave the loop: of the active variables, then the sums."""
        from runnel.ops.fill import zeros_like

        loop, forward = self.loop, self.loop.context
        count = iteration_count(forward)
        grads = [
            zeros_like(loop.outputs[k], optimize=False)
            if exit_grads[k] is None
            else convert_to_tensor(exit_grads[k])
            for k in self.active
        ]
        totals = [zeros_for(loop.invariants[i].op.inputs[0]) for i in self.sums]
        state = GradState(forward)
        context = WhileContext(
            parallel_iterations=forward.parallel_iterations,
            back_prop=forward.back_prop,
            swap_memory=forward.swap_memory,
            name="while_context",
            grad_state=state,
        )
        state.grad_context = context
        self.state = state
        variables = [count, *grads, *totals]
        invariants = [
            (),
            *(loop.merges[k].dims for k in self.active),
            *(total.dims for total in totals),
        ]
        exits = context.build(
            lambda index, *_: index > 0, self._body, variables, list(invariants), True
        )
        outer = context.outer_context.GetWhileContext() if context.outer_context else None
        if outer is not None and outer.grad_state is not None:
            outer.grad_state.come_after(exits[0].op)
        return list(exits[1:])

    def _body(self, index: Tensor, *variables: Tensor) -> list[Tensor]:
        loop = self.loop
        following = index - 1
        self.state.count_with(following.op)
        grads = variables[: len(self.active)]
        totals = variables[len(self.active) :]
        starts = [loop.switches[k].outputs[1] for k in self.active]
        merges = [loop.merges[k] for k in self.active]
        invariants = [loop.invariants[i] for i in self.sums]
        boundary = {
            *(switch.outputs[1] for switch in loop.switches),
            *loop.merges,
            *loop.invariants,
        }
        sources = [*starts, *merges, *invariants]
        level = LoopLevel(loop.context, boundary)
        found = self.walk([self.results[k] for k in self.active], grads, sources, level)
        into = []
        n = len(starts)
        for k, one, other in zip(self.active, found[:n], found[n : 2 * n], strict=True):
            into.append(self._at_start(k, one, other))
        self.reached = [grad is not None for grad in found[2 * n :]]
        sums = [
            total if grad is None else total + convert_to_tensor(grad)
            for total, grad in zip(totals, found[2 * n :], strict=True)
        ]
        return [following, *into, *sums]

    def _at_start(self, k: int, one: Any, other: Any) -> Tensor:
        """The gradient of a loop variable at the start of an iteration."""
        parts = [convert_to_tensor(part) for part in (one, other) if part is not None]
        if parts:
            total = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        else:
            total = zeros_for(self.loop.switches[k].outputs[1])
        total.set_shape(self.loop.merges[k].dims)
        return total


def zeros_for(tensor: Tensor) -> Tensor:
    """Zeros in the shape of ``tensor``, or of the variable that it denotes."""
    from runnel.ops.array_shape import shape
    from runnel.ops.fill import zeros
    from runnel.ops.state import shape_of_handle_op

    if tensor.dtype.name == "resource":
        variable = _made_by(tensor)
        declared = variable.attrs["shape"]._dims
        dims = declared if is_fully_defined(declared) else shape_of_handle_op(tensor)
        return zeros(dims, variable.attrs["dtype"])
    return zeros(shape(tensor), tensor.dtype.base_dtype)
