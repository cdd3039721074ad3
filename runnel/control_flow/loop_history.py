"""The history of a loop's values: what its gradient needs of each iteration, kept on stacks.

The loop pushes a value in every iteration; the gradient's loop, which runs backwards, pops them. A
value in a branch is pushed and popped only in iterations in which the branch is taken. A value
that is the same in every iteration needs no stack.

Control edges say what an executor that runs iterations at the same time must know: the pushes of an
iteration come before the counter's step, and those of the next one after it; so do the pops.
"""

from __future__ import annotations

from typing import Any

from runnel.control_flow.context import add_control_inputs, output_context
from runnel.control_flow.guards import Guards, guards_of
from runnel.control_flow.while_context import WhileContext
from runnel.graph.constant_value import constant_value
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor
from runnel.ops.constants import constant
from runnel.ops.control_flow import control_trigger_op, enter, exit, merge, switch
from runnel.ops.stacks import stack_op, stack_pop_op, stack_push_op
from runnel.ops.tensor_array_ops import grad_op

_NO_LIMIT = -1


class _Steps:
    """The operation that ends an iteration for a counter, and what must run before it."""

    def __init__(self, step: Operation, loop: WhileContext) -> None:
        self.step = step
        self._loop = loop
        self._sync: Operation | None = None

    def come_after(self, op: Operation, guarded: bool = False) -> None:
        """``op`` runs before the step; or not at all, if it is in a branch that is not taken."""
        if not guarded and output_context(op) is self._loop:
            self.step._add_control_inputs([op])
            return
        if self._sync is None:
            graph = op.graph
            with graph._scopes.override(control_inputs=(), control_flow_context=self._loop):
                self._sync = control_trigger_op(name="sync")
            self.step._add_control_inputs([self._sync])
        self._sync._add_control_inputs([op])


class _Counter(_Steps):
    """The iteration count of a loop; ``begin`` runs when an iteration begins."""

    def __init__(self, count: Tensor, begin: Operation, step: Operation, loop: WhileContext):
        super().__init__(step, loop)
        self.count = count
        self.begin = begin


def iteration_count(loop: WhileContext) -> Tensor:
    """The number of iterations that ``loop`` has run, counted from now on."""
    return _counter(loop).count


def _counter(loop: WhileContext) -> _Counter:
    found = getattr(loop, "_counter", None)
    if found is not None:
        return found
    graph = loop.graph
    outer = loop.outer_context
    with graph._scopes.override(control_inputs=(), control_flow_context=outer):
        zero = constant(0, name="f_count")
        with graph.control_dependencies(None):
            entered = enter(
                zero, loop.name, parallel_iterations=loop.parallel_iterations, name="f_count"
            )
        loop._adopt_enters([entered])
        around = outer.GetWhileContext() if outer is not None else None
        of_outer = getattr(around, "_counter", None)
        if of_outer is not None:
            add_control_inputs(entered.op, [of_outer.begin])
        loop._values.add(entered)
        loop._loop_enters.append(entered)
        loop.Enter()
        merged = merge([entered, entered])[0]
        assert loop.pivot is not None
        stop, go_on = switch(merged, loop.pivot)
        step = go_on + 1
        loop.add_back_edge(merged, step)
        count = exit(stop, name="f_count")
        loop.ExitResult([count])
        loop.Exit()
    made = _Counter(count, go_on.op, step.op, loop)
    loop._counter = made  # type: ignore[attr-defined]
    if of_outer is not None:
        of_outer.come_after(count.op, guarded=bool(guards_of(graph).in_branches(count)))
    return made


class GradState:
    """The gradient of ``forward_context`` that is being built in ``grad_context``."""

    def __init__(self, forward_context: WhileContext) -> None:
        self.forward_context = forward_context
        self.grad_context: WhileContext | None = None
        self._steps: _Steps | None = None
        self._history: dict[Tensor, Tensor] = {}

    def count_with(self, step: Operation) -> None:
        """``step`` ends an iteration of the gradient's loop."""
        assert self.grad_context is not None
        self._steps = _Steps(step, self.grad_context)

    def come_after(self, op: Operation) -> None:
        """``op``, if it runs, does so before the next iteration of the gradient's loop begins."""
        assert self._steps is not None
        # The gradient of what is in a branch is dead when the branch was not taken.
        self._steps.come_after(op, guarded=True)

    def real_value(self, value: Tensor) -> Tensor:
        """What stands in the gradient's loop for ``value`` of the loop."""
        found = self._history.get(value)
        if found is None:
            found = self._history[value] = self._find(value)
        return found

    def _find(self, value: Tensor) -> Tensor:
        gradient = self.grad_context
        assert gradient is not None
        outside = _invariant(value, self.forward_context)
        if outside is not None:
            return gradient.AddValue(outside)
        if value.dtype.name == "bool" and _copies(value):
            # One history for a predicate: what it guards is compared by it (``guards``).
            return self.real_value(value.op.inputs[0])
        known = constant_value(value)
        with value.graph._scopes.override(control_inputs=(), control_flow_context=gradient):
            if known is not None:
                return constant(known, dtype=value.dtype.base_dtype)
            if value.op.op_def.name == "TensorArrayGradV3" and value.value_index == 0:
                # The array is the same for the same source: asking again is better than a stack.
                array = self.real_value(value.op.inputs[0])
                return grad_op(array, constant(0.0), source=value.op.attrs["source"])[0]
        guards = guards_of(value.graph).in_branches(value)
        return self.pop(self._push(value, guards), value.dtype.base_dtype, value.dims, guards)

    def pop(self, stack: Tensor, dtype: Any, dims: Any, guards: Guards) -> Tensor:
        """What the gradient's loop takes from ``stack``, in the branches that ``guards`` name."""
        gradient = self.grad_context
        assert gradient is not None and self._steps is not None
        with stack.graph._scopes.override(control_inputs=(), control_flow_context=gradient):
            handle = gradient.AddValue(stack)
            for guard in guards:
                handle = switch(handle, gradient.AddValue(guard.pred))[guard.side]
            popped = stack_pop_op(handle, elem_type=dtype)
            popped.set_shape(dims)
        self._steps.come_after(popped.op, guarded=bool(guards))
        return popped

    def push(self, stack: Tensor, value: Tensor) -> None:
        """The gradient's loop pushes ``value`` whenever it is alive."""
        gradient = self.grad_context
        assert gradient is not None and gradient._pivot_for_body is not None
        begins = (gradient._pivot_for_body.op,)
        with stack.graph._scopes.override(control_inputs=begins, control_flow_context=gradient):
            pushed = stack_push_op(
                stack, value, swap_memory=gradient.swap_memory, name="StackPushV2"
            ).op
        record_push(gradient, pushed)
        self.come_after(pushed)

    def _push(self, value: Tensor, guards: Guards) -> Tensor:
        """The handle of the stack to which the loop pushes ``value``."""
        loop = self.forward_context
        graph = value.graph
        handle = new_stack(graph, value.dtype.base_dtype)
        counter = _counter(loop)
        with graph._scopes.override(control_inputs=(counter.begin,), control_flow_context=loop):
            if not any(guard.is_loop for guard in guards_of(graph).of(value)):
                # Made for the loop's condition, which is computed once more than the body.
                assert loop.pivot is not None
                value = switch(value, loop.pivot)[1]
            inside = loop.AddValue(handle)
            for guard in guards:
                inside = switch(inside, guard.pred)[guard.side]
            pushed = stack_push_op(
                inside, value, swap_memory=loop.swap_memory, name="StackPushV2"
            ).op
        record_push(loop, pushed)
        counter.come_after(pushed, guarded=bool(guards))
        return handle


# Stacks -----------------------------------------------------------------------------------------


def new_stack(graph: Graph, dtype: Any) -> Tensor:
    """The handle of a stack, outside all loops: an inner loop's stack serves all its runs."""
    with graph._scopes.override(control_inputs=(), control_flow_context=None):
        limit = constant(_NO_LIMIT, name="Const")
        return stack_op(limit, elem_type=dtype, name="f_acc")


def stack_of(handle: Tensor) -> Tensor | None:
    """The handle, as it was made, of the stack that ``handle`` denotes; None if it is none."""
    if handle.dtype.name != "resource":
        return None
    while handle.op.op_def.name in ("Enter", "Switch", "Identity"):
        handle = handle.op.inputs[0]
    return handle if handle.op.op_def.name == "StackV2" else None


def record_push(loop: WhileContext, push: Operation) -> None:
    """Notes that ``loop`` keeps values by ``push``."""
    stack = stack_of(push.inputs[0])
    if stack is not None:
        loop.pushes.append(push)
        pushes_of(push.graph)[stack] = loop


def pushes_of(graph: Graph) -> dict[Tensor, WhileContext]:
    """The loop that pushes to each stack."""
    return graph.__dict__.setdefault("_stack_pushes", {})


def _copies(value: Tensor) -> bool:
    """True for a copy that is alive whenever the original is."""
    op = value.op
    if op.op_def.name != "Identity" or op.inputs[0].dtype.is_ref_dtype:
        return False
    analysis = guards_of(op.graph)
    return analysis.of(value) == analysis.of(op.inputs[0])


def _invariant(value: Tensor, loop: WhileContext) -> Tensor | None:
    """The tensor outside ``loop`` that has the value of ``value`` in every iteration, if any."""
    while value.op.op_def.name in ("Identity", "RefIdentity"):
        # In a branch it is dead at times, and what takes it counts on that.
        if value.op.control_flow_context is not loop:
            return None
        value = value.op.inputs[0]
    is_enter = value.op.op_def.name in ("Enter", "RefEnter")
    if is_enter and value.op.control_flow_context is loop and value.op.attrs["is_constant"]:
        return value.op.inputs[0]
    return None
