"""Softmax and its logarithm, over the last axis or any other."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims
from runnel.ops.elementwise import exp
from runnel.ops.half_precision import narrow, widen
from runnel.ops.reduce_functions import one_of, reduce_sum
from runnel.ops.transposition import transpose

_FLOAT = "T: {half, bfloat16, float, double}"

softmax_op = register_op("Softmax", inputs="logits: T", outputs="softmax: T", attrs=_FLOAT)
log_softmax_op = register_op(
    "LogSoftmax", inputs="logits: T", outputs="logsoftmax: T", attrs=_FLOAT
)


def _at_least_a_vector(logits: Tensor) -> Dims:
    if logits.dims == ():
        raise ValueError("Softmax needs logits of at least one dimension, not a scalar,")
    return logits.dims


softmax_op.shape(_at_least_a_vector)
log_softmax_op.shape(_at_least_a_vector)


def shifted(xp: Any, logits: Any) -> Any:
    """``logits`` minus the largest of each row, so that no exponential overflows."""
    if logits.ndim == 0:
        raise InvalidArgumentError(None, None, "logits must have at least one dimension")
    if logits.shape[-1] == 0:
        return logits
    return logits - xp.max(logits, axis=-1, keepdims=True)


@softmax_op.kernel
def _(xp, logits):
    e = xp.exp(shifted(xp, widen(logits)))
    return narrow(e / xp.sum(e, axis=-1, keepdims=True), logits.dtype)


@log_softmax_op.kernel
def _(xp, logits):
    z = shifted(xp, widen(logits))
    return narrow(z - xp.log(xp.sum(xp.exp(z), axis=-1, keepdims=True)), logits.dtype)


@softmax_op.gradient
def _(op, grad):
    y = op.outputs[0]
    return (grad - reduce_sum(grad * y, -1, keepdims=True)) * y


@log_softmax_op.gradient
def _(op, grad):
    return grad - reduce_sum(grad, -1, keepdims=True) * exp(op.outputs[0])


def swap_with_last(tensor: Tensor, axis: int) -> list[int] | None:
    """The permutation that exchanges ``axis`` and the last axis; None when they are the same."""
    if axis == -1:
        return None
    if tensor.dims is None:
        raise ValueError(
            f"Softmax over axis {axis} needs the rank of {tensor.name}, which is unknown here. "
            "Use set_shape to tell it, or take the softmax over the last axis (-1)."
        )
    rank = len(tensor.dims)
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            None,
            None,
            f"axis {axis} of the softmax is not in [{-rank}, {rank}): "
            f"{tensor.name} has {rank} dimensions",
        )
    axis %= rank
    if axis == rank - 1:
        return None
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return order


def _over_axis(op_def: OpDef, logits: Any, axis: Any, name: str | None) -> Tensor:
    logits = convert_to_tensor(logits)
    order = swap_with_last(logits, -1 if axis is None else int(axis))
    if order is None:
        return op_def(logits, name=name)
    return transpose(op_def(transpose(logits, order)), order, name=name)


def softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """``exp(logits) / sum(exp(logits))`` over ``axis`` (the last, unless given).

    ``dim`` is the old name of ``axis``.

    Example:
        >>> tf.Session().run(tf.nn.softmax([[0.0, 0.0], [1000.0, 0.0]]))
        array([[0.5, 0.5],
               [1. , 0. ]], dtype=float32)
    """
    return _over_axis(softmax_op, logits, one_of("axis", axis, "dim", dim), name)


def log_softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """``logits - log(sum(exp(logits)))`` over ``axis``; finite where the softmax underflows.

    Example:
        >>> tf.Session().run(tf.nn.log_softmax([1000.0, 0.0]))
        array([    0., -1000.], dtype=float32)
    """
    return _over_axis(log_softmax_op, logits, one_of("axis", axis, "dim", dim), name)
