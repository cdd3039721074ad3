"""Choosing between two values element by element, and finding where a condition holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import broadcast_dims, format_dims, merge_dims
from runnel.ops.broadcast_gradient import unbroadcast
from runnel.ops.choice import choose
from runnel.ops.fill import zeros_like

select_op = register_op(
    "Select", inputs="condition: bool, t: T, e: T", outputs="output: T", attrs="T: type"
)
select_v2_op = register_op(
    "SelectV2", inputs="condition: bool, t: T, e: T", outputs="output: T", attrs="T: type"
)
where_op = register_op(
    "Where",
    inputs="input: T",
    outputs="index: int64",
    attrs="T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
    "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = DT_BOOL",
    host=True,
    differentiable=False,
)


@select_op.shape
def _(condition, t, e):
    dims = merge_dims(t.dims, e.dims)
    c = condition.dims
    if c is None or dims is None or c == ():
        return dims
    if len(c) == 1 and len(dims) > 1:
        merge_dims(c, dims[:1])  # a vector chooses rows
        return dims
    return merge_dims(c, dims)


@select_op.kernel
def _(xp, condition, t, e):
    rows = condition.ndim == 1 and t.ndim > 1
    fits = condition.shape in ((), t.shape) or (rows and condition.shape[0] == t.shape[0])
    if t.shape != e.shape or not fits:
        raise InvalidArgumentError(
            None,
            None,
            f"The condition {format_dims(condition.shape)} must be a scalar, have the shape of the "
            f"values or be a vector with one entry for each row, and the values must have one "
            f"shape, not {format_dims(t.shape)} and {format_dims(e.shape)}",
        )
    if rows:
        condition = condition.reshape((-1, *(1,) * (t.ndim - 1)))
    return choose(xp, condition, t, e)


@select_op.gradient
def _(op, grad):
    condition, t, _ = op.inputs
    zeros = zeros_like(t)
    return [None, select_op(condition, grad, zeros), select_op(condition, zeros, grad)]


@select_v2_op.shape
def _(condition, t, e):
    return broadcast_dims(condition.dims, broadcast_dims(t.dims, e.dims))


@select_v2_op.kernel
def _(xp, condition, t, e):
    return choose(xp, condition, t, e)


@select_v2_op.gradient
def _(op, grad):
    condition, t, e = op.inputs
    zeros = zeros_like(grad)
    (output,) = op.outputs
    to_t = unbroadcast(t, output, select_v2_op(condition, grad, zeros), None)[0]
    to_e = unbroadcast(e, output, select_v2_op(condition, zeros, grad), None)[0]
    return [None, to_t, to_e]


@where_op.shape
def _(condition):
    return (None, None if condition.dims is None else len(condition.dims))


@where_op.kernel
def _(xp, condition):
    flat = np.flatnonzero(condition)
    places = np.empty((flat.size, condition.ndim), np.int64)
    for axis in range(condition.ndim - 1, 0, -1):
        above = flat // condition.shape[axis]
        places[:, axis] = flat - above * condition.shape[axis]
        flat = above
    if condition.ndim:  # a scalar's place has no coordinates
        places[:, 0] = flat
    return places


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Elements of ``x`` where ``condition`` holds and of ``y`` elsewhere; without them, the places.

    ``x`` and ``y`` have one shape; ``condition`` has it too, or is a vector that chooses rows.

    Example:
        >>> tf.where([True, False], [1, 2], [3, 4])  # [1, 4]
        >>> tf.where([True, False, True])  # [[0], [2]]
    """
    if x is None and y is None:
        return where_op(condition, name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return select_op(condition, x, y, name=name)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Like ``tf.where``, but ``condition``, ``x`` and ``y`` are broadcast together.

    Example:
        >>> tf.compat.v2.where([True, False], 1, [3, 4])  # [1, 4]
    """
    if x is None and y is None:
        return where_op(condition, name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return select_v2_op(condition, x, y, name=name)
