"""Gradients of the control flow primitives that make conditionals.

What ``Switch`` takes apart its gradient merges, and the other way around. Those that make loops
are differentiated a whole loop at a time (``runnel.autodiff.loops``).
"""

from __future__ import annotations

from typing import Any

from runnel.control_flow.cond_context import CondContext
from runnel.control_flow.context import output_context
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops import control_flow as primitives
from runnel.ops.control_flow import merge, switch


def _switch_gradient(op: Operation, *grads: Any) -> list[Any]:
    """The gradient of the output that was taken: the other one's gradient is dead."""
    data, pred = op.inputs
    if all(grad is None for grad in grads):
        return [None, None]
    sides = list(grads)
    if any(isinstance(grad, IndexedSlices) for grad in sides):
        present = [g for g in sides if g is not None]
        if all(isinstance(grad, IndexedSlices) for grad in present):
            return [_merge_slices(data, pred, sides), None]
        sides = [None if g is None else convert_to_tensor(g) for g in sides]
    for side, grad in enumerate(sides):
        if grad is None:
            from runnel.autodiff.loops import zeros_for

            sides[side] = switch(zeros_for(data), pred)[side]
    return [merge(sides, name="cond_grad")[0], None]


def _merge_slices(data: Tensor, pred: Tensor, sides: list[Any]) -> IndexedSlices:
    """Where the branch was not taken there are no slices."""
    present = next(grad for grad in sides if grad is not None)
    from runnel.autodiff.loops import zeros_for
    from runnel.ops.array_shape import shape
    from runnel.ops.fill import zeros

    rows = zeros_for(data)
    parts = []
    for side, grad in enumerate(sides):
        if grad is None:
            values = switch(rows[:0], pred)[side]
            indices = switch(zeros([0], present.indices.dtype), pred)[side]
            parts.append((values, indices))
        else:
            parts.append((grad.values, grad.indices))
    values = merge([values for values, _ in parts], name="cond_grad")[0]
    indices = merge([indices for _, indices in parts], name="cond_grad")[0]
    return IndexedSlices(values, indices, shape(rows))


def _merge_gradient(op: Operation, grad: Any, _: Any) -> list[Any]:
    """The gradient for the input that was taken; dead for the others."""
    if grad is None:
        return [None] * len(op.inputs)
    grad = convert_to_tensor(grad)
    branches = [output_context(tensor.op) for tensor in op.inputs]
    if len(branches) == 2 and all(isinstance(branch, CondContext) for branch in branches):
        first, second = branches
        if first.pred is second.pred and (first.branch, second.branch) == (0, 1):
            return list(switch(grad, first.pred, name="cond_grad"))
    from runnel.ops.comparison import equal

    taken = op.outputs[1]
    return [switch(grad, equal(taken, index))[1] for index in range(len(op.inputs))]


def _without_context(op: Operation, *grads: Any) -> Any:
    raise LookupError(
        f"{op.name!r} ({op.type}) is part of a loop that tf.while_loop did not build in this "
        "program; such a loop has no gradient"
    )


for _op in (primitives.switch_op, primitives.ref_switch_op):
    _op.gradient(_switch_gradient)
for _op in (primitives.merge_op, primitives.ref_merge_op):
    _op.gradient(_merge_gradient)
for _op in (primitives.exit_op, primitives.ref_exit_op):
    _op.gradient(_without_context)
for _op in (primitives.next_iteration_op, primitives.ref_next_iteration_op):
    _op.gradient(_without_context)


@primitives.enter_op.gradient
def _(op: Operation, grad: Tensor) -> Any:
    return grad  # differentiating inside a loop: what is constant there came from outside


primitives.ref_enter_op.gradient(lambda op, grad: grad)
