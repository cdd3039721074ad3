"""The history of a loop's values: stacks keep what its gradient needs of each iteration.

The loop pushes a value in every iteration; the gradient's loop, which runs backwards, pops them. A
value in a branch is pushed and popped only in iterations in which the branch is taken. A value that
is the same in every iteration needs no stack.
"""

from __future__ import annotations

from typing import Any

from runnel.autodiff.differentiation import guards_of
from runnel.autodiff.loop_record import (
    IterationCounter,
    Iterations,
    LoopRecord,
    record_of,
    records_of,
)
from runnel.control_flow.guards import Guards
from runnel.control_flow.while_context import WhileContext
from runnel.graph.constant_value import constant_value
from runnel.graph.graph import Graph
from runnel.graph.operation import Tensor
from runnel.ops.constants import constant
from runnel.ops.control_flow import switch
from runnel.ops.stacks import stack_op, stack_pop_op, stack_push_op
from runnel.ops.tensor_array_ops import grad_op

_NO_LIMIT = -1


# The loop ---------------------------------------------------------------------------------------


def counter_of(record: LoopRecord) -> IterationCounter:
    """What counts the iterations that the loop runs: from now on, if nothing did before."""
    if record.counter is None:
        record.counter = _new_counter(record.loop)
    return record.counter


def _new_counter(loop: WhileContext) -> IterationCounter:
    around = loop.outer_context.GetWhileContext() if loop.outer_context is not None else None
    of_outer = None if around is None else record_of(around).counter
    waits = [] if of_outer is None else [of_outer.iterations.begin]
    count, begin, step = loop.add_counter("f_count", waits)
    if of_outer is not None:
        guarded = bool(guards_of(loop.graph).in_branches(count))
        of_outer.iterations.end_after(count.op, guarded)
    return IterationCounter(count, Iterations(loop, begin, step))


def _keep(record: LoopRecord, value: Tensor, guards: Guards) -> Tensor:
    """The handle of the stack to which the loop pushes ``value`` from now on."""
    loop = record.loop
    graph = value.graph
    handle = new_stack(graph, value.dtype.base_dtype)
    iterations = counter_of(record).iterations
    with graph._scopes.override(control_inputs=(iterations.begin,), control_flow_context=loop):
        if not any(guard.is_loop for guard in guards_of(graph).of(value)):
            # Made for the loop's condition, which is computed once more than the body.
            assert loop.pivot is not None
            value = switch(value, loop.pivot)[1]
        inside = loop.AddValue(handle)
        for guard in guards:
            inside = switch(inside, guard.pred)[guard.side]
    _push(iterations, inside, value, guarded=bool(guards))
    return handle


# Its gradient -----------------------------------------------------------------------------------


def stand_in(record: LoopRecord, value: Tensor) -> Tensor:
    """What stands in a gradient's loop for ``value`` of the loop whose gradient it computes."""
    found = record.stand_ins.get(value)
    if found is None:
        found = record.stand_ins[value] = _find(record, value)
    return found


def _find(record: LoopRecord, value: Tensor) -> Tensor:
    gradient, forward = record.loop, record.gradient_of
    assert forward is not None
    outside = _invariant(value, forward.loop)
    if outside is not None:
        return gradient.AddValue(outside)
    if value.dtype.name == "bool" and _copies(value):
        # One history for a predicate: what it guards is compared by it (``guards``).
        return stand_in(record, value.op.inputs[0])
    known = constant_value(value)
    with value.graph._scopes.override(control_inputs=(), control_flow_context=gradient):
        if known is not None:
            return constant(known, dtype=value.dtype.base_dtype)
        if value.op.op_def.name == "TensorArrayGradV3" and value.value_index == 0:
            # The array is the same for the same source: asking again is better than a stack.
            array = stand_in(record, value.op.inputs[0])
            return grad_op(array, constant(0.0), source=value.op.attrs["source"])[0]
    guards = guards_of(value.graph).in_branches(value)
    return pop(record, _keep(forward, value, guards), value.dtype.base_dtype, value.dims, guards)


def pop(record: LoopRecord, stack: Tensor, dtype: Any, dims: Any, guards: Guards) -> Tensor:
    """What a gradient's loop takes from ``stack``, in the branches that ``guards`` name."""
    gradient = record.loop
    assert record.backwards is not None
    with stack.graph._scopes.override(control_inputs=(), control_flow_context=gradient):
        handle = gradient.AddValue(stack)
        for guard in guards:
            handle = switch(handle, gradient.AddValue(guard.pred))[guard.side]
        popped = stack_pop_op(handle, elem_type=dtype)
        popped.set_shape(dims)
    record.backwards.end_after(popped.op, guarded=bool(guards))
    return popped


def push(record: LoopRecord, stack: Tensor, value: Tensor) -> None:
    """A gradient's loop pushes ``value`` whenever it is alive."""
    assert record.backwards is not None
    # The gradient of what is in a branch is dead when the branch was not taken.
    _push(record.backwards, stack, value, guarded=True)


# Stacks -----------------------------------------------------------------------------------------


def new_stack(graph: Graph, dtype: Any) -> Tensor:
    """The handle of a stack, outside all loops: an inner loop's stack serves all its runs."""
    with graph._scopes.override(control_inputs=(), control_flow_context=None):
        limit = constant(_NO_LIMIT, name="Const")
        return stack_op(limit, elem_type=dtype, name="f_acc")


def _push(iterations: Iterations, handle: Tensor, value: Tensor, guarded: bool) -> None:
    loop = iterations.loop
    begins = (iterations.begin,)
    with loop.graph._scopes.override(control_inputs=begins, control_flow_context=loop):
        pushed = stack_push_op(handle, value, swap_memory=loop.swap_memory, name="StackPushV2").op
    records_of(loop.graph).note_push(loop, pushed)
    iterations.end_after(pushed, guarded)


# Values that need none --------------------------------------------------------------------------


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
