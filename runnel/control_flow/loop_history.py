"""The history of a loop's values: what its gradient needs of each iteration, kept on stacks.

The loop pushes a value in every iteration; the gradient's loop, which runs backwards, pops them. A
value in a branch is pushed and popped only in iterations in which the branch is taken. A value
that is the same in every iteration needs no stack.

Control edges say what an executor that runs iterations at the same time must know: the pushes of an
iteration come before the counter's step, and those of the next one after it; so do the pops.
"""

from __future__ import annotations

from runnel.control_flow.cond_context import CondContext
from runnel.control_flow.context import add_control_inputs, output_context
from runnel.control_flow.while_context import WhileContext
from runnel.graph.constant_value import constant_value
from runnel.graph.operation import Operation, Tensor
from runnel.ops.constants import constant
from runnel.ops.control_flow import control_trigger_op, enter, exit, merge, switch
from runnel.ops.stacks import stack_op, stack_pop_op, stack_push_op

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
        of_outer.come_after(count.op)
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
        graph = value.graph
        outside = _invariant(value, self.forward_context)
        if outside is not None:
            return gradient.AddValue(outside)
        known = constant_value(value)
        with graph._scopes.override(control_inputs=(), control_flow_context=gradient):
            if known is not None:
                return constant(known, dtype=value.dtype.base_dtype)
            handle = self._push(value)
            # In the branch in which the value is: nested ones from the outside.
            entered = gradient.AddValue(handle)
            branches = _branches(value, self.forward_context)
            for branch in reversed(branches):
                pred = self.real_value(branch.pred)
                entered = switch(entered, pred)[branch.branch]
            popped = stack_pop_op(entered, elem_type=value.dtype.base_dtype)
            popped.set_shape(value.dims)
        assert self._steps is not None
        self._steps.come_after(popped.op, guarded=bool(branches))
        return popped

    def _push(self, value: Tensor) -> Tensor:
        """The handle of the stack to which the loop pushes ``value``."""
        loop = self.forward_context
        graph = value.graph
        with graph._scopes.override(control_inputs=(), control_flow_context=None):
            limit = constant(_NO_LIMIT, name="Const")
            handle = stack_op(limit, elem_type=value.dtype.base_dtype, name="f_acc")
        branches = _branches(value, loop)
        inside = branches[0] if branches else loop
        counter = _counter(loop)
        with graph._scopes.override(control_inputs=(counter.begin,), control_flow_context=inside):
            pushed = stack_push_op(
                handle, value, swap_memory=loop.swap_memory, name="StackPushV2"
            ).op
        counter.come_after(pushed)
        return handle


def _branches(value: Tensor, loop: WhileContext) -> list[CondContext]:
    """The branches, within ``loop``, in which ``value`` is; the innermost first."""
    context = value.op.control_flow_context
    if value.op.op_def.name in ("Exit", "RefExit") and context is not loop:
        context = context.outer_context
    found = []
    while context is not None and context is not loop:
        if isinstance(context, CondContext):
            found.append(context)
        context = context.outer_context
    return found


def _invariant(value: Tensor, loop: WhileContext) -> Tensor | None:
    """The tensor outside ``loop`` that has the value of ``value`` in every iteration, if any."""
    while value.op.op_def.name in ("Identity", "RefIdentity"):
        if value.op.control_flow_context is not loop:
            return None
        value = value.op.inputs[0]
    is_enter = value.op.op_def.name in ("Enter", "RefEnter")
    if is_enter and value.op.control_flow_context is loop and value.op.attrs["is_constant"]:
        return value.op.inputs[0]
    return None
