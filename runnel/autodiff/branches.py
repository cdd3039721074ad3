"""Gradients of the primitives that make conditionals.

The gradient of ``Switch`` merges, and the gradient of ``Merge`` switches. The primitives that make
loops are differentiated a whole loop at a time (``runnel.autodiff.loops``).
"""

from __future__ import annotations

from typing import Any

from runnel.autodiff.differentiation import guards_of
from runnel.autodiff.zeros import Gradient, dead_elsewhere, no_slices_of, shape_for, zeros_for
from runnel.control_flow.cond_context import CondContext
from runnel.control_flow.guards import Guard, Guards, original
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
    if pred.op.op_def.name == "LoopCond":
        return [grads[1], None]  # within an iteration the loop has gone on
    branch = _current_branch(op)
    if branch is not None:
        return [grads[branch], None]
    present = [grad for grad in grads if grad is not None]
    if all(isinstance(grad, IndexedSlices) for grad in present):
        return [_merge_slices(op, grads), None]
    sides = []
    for side, grad in enumerate(grads):
        if grad is None:
            sides.append(switch(zeros_for(data), pred)[side])
        else:
            sides.append(dead_elsewhere(convert_to_tensor(grad), _guards(op, side)))
    return [merge(sides, name="cond_grad")[0], None]


def _guards(op: Operation, side: int) -> Guards:
    """When an output of a Switch is alive, given that the Switch is."""
    pred = op.inputs[1]
    return (Guard(original(pred), side, pred),)


def _current_branch(op: Operation) -> int | None:
    """The branch for which ``op`` switches, if operations are now being made inside it."""
    context: Any = op.graph._get_control_flow_context()
    while context is not None:
        if context is op.control_flow_context and isinstance(context, CondContext):
            return context.branch
        context = context.outer_context
    return None


def _merge_slices(op: Operation, sides: tuple[Any, ...]) -> IndexedSlices:
    """Where the branch was not taken there are no slices."""
    data, pred = op.inputs
    present = next(grad for grad in sides if grad is not None)
    parts = []
    for side, grad in enumerate(sides):
        if grad is None:
            values, indices = no_slices_of(data, present.indices.dtype)
            parts.append((switch(values, pred)[side], switch(indices, pred)[side]))
        else:
            found = (grad.values, grad.indices)
            values, indices = (dead_elsewhere(part, _guards(op, side)) for part in found)
            parts.append((values, indices))
    values = merge([values for values, _ in parts], name="cond_grad")[0]
    indices = merge([indices for _, indices in parts], name="cond_grad")[0]
    return IndexedSlices(values, indices, shape_for(data))


def _merge_gradient(op: Operation, grad: Any, _: Any) -> list[Any]:
    """The gradient for the input that was taken; dead for the others."""
    if grad is None:
        return [None] * len(op.inputs)
    analysis = guards_of(op.graph)
    guards = [analysis.of(tensor) for tensor in op.inputs]
    decided = _decision(guards)
    if decided is not None:
        pred, sides = decided
        switched = _switch(grad, pred)
        return [switched[side] for side in sides]
    from runnel.ops.comparison import equal

    taken = op.outputs[1]
    return [_switch(grad, equal(taken, index))[1] for index in range(len(op.inputs))]


def _decision(guards: list[Guards]) -> tuple[Tensor, list[int]] | None:
    """The predicate that chooses between two values, and the side of each."""
    if len(guards) != 2:
        return None
    for one in guards[0]:
        for other in guards[1]:
            if one.key is other.key and one.side != other.side:
                return one.pred, [one.side, other.side]
    return None


def _switch(grad: Gradient, pred: Tensor) -> list[Any]:
    if not isinstance(grad, IndexedSlices):
        return switch(grad, pred, name="cond_grad")
    values = switch(grad.values, pred, name="cond_grad")
    indices = switch(grad.indices, pred, name="cond_grad")
    # The shape is that of the whole; what uses it is dead with the values.
    return [IndexedSlices(values[k], indices[k], grad.dense_shape) for k in (0, 1)]


def _without_context(op: Operation, *grads: Any) -> Any:
    raise LookupError(
        f"{op.name!r} ({op.type}) is part of a loop that is not of the form that tf.while_loop "
        "builds; such a loop has no gradient"
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
