"""Broadcasting: stretching a tensor, and what shapes become when they are broadcast together."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.array_size import require_room
from runnel.graph.constant_value import constant_value, constant_value_as_dims
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import TensorShape, broadcast_dims, format_dims
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.array_shape import size as size_of

broadcast_to_op = register_op(
    "BroadcastTo",
    inputs="input: T, shape: Tidx",
    outputs="output: T",
    attrs=["T: type", "Tidx: {int32, int64} = DT_INT32"],
    static_inputs=("shape",),
)


@broadcast_to_op.shape
def _(x, shape):
    wanted = constant_value_as_dims(shape)
    if wanted is not None and x.dims is not None:
        if len(x.dims) > len(wanted) or any(
            a not in (1, b, None) and b is not None for a, b in zip(x.dims[::-1], wanted[::-1])
        ):
            raise ValueError(
                f"A tensor of shape {format_dims(x.dims)} cannot be broadcast to "
                f"{format_dims(wanted)}"
            )
    return wanted


@broadcast_to_op.kernel
def _(xp, x, shape):
    wanted = tuple(shape.tolist())
    require_room(wanted, x.dtype.itemsize)
    try:
        return xp.broadcast_to(x, wanted)
    except ValueError:
        raise InvalidArgumentError(
            None,
            None,
            f"A tensor of shape {format_dims(x.shape)} cannot be broadcast to "
            f"{format_dims(wanted)}",
        ) from None


@broadcast_to_op.gradient
def _(op, grad):
    x, shape = op.inputs
    own_shape = shape_of(x, out_type=shape.dtype.base_dtype)
    stretched, _ = broadcast_gradient_args_op(own_shape, shape)
    return [reshape(get_op_def("Sum")(grad, stretched), own_shape), None]


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """``input`` stretched to ``shape``, its dimensions of size 1 repeated.

    Example:
        >>> tf.broadcast_to([1, 2, 3], [2, 3])  # [[1, 2, 3], [1, 2, 3]]
    """
    return broadcast_to_op(input, shape, name=name)


# Shapes, as values ----------------------------------------------------------------------------

_SHAPE_TYPE = "T: {int32, int64} = DT_INT32"

broadcast_args_op = register_op(
    "BroadcastArgs",
    inputs="s0: T, s1: T",
    outputs="r0: T",
    attrs=_SHAPE_TYPE,
    static_inputs=("s0", "s1"),
    differentiable=False,
)
broadcast_gradient_args_op = register_op(
    "BroadcastGradientArgs",
    inputs="s0: T, s1: T",
    outputs="r0: T, r1: T",
    attrs=_SHAPE_TYPE,
    static_inputs=("s0", "s1"),
    differentiable=False,
)


@broadcast_args_op.shape
def _(s0, s1):
    a, b = s0.dims, s1.dims
    if a is None or b is None or None in a or None in b:
        return (None,)
    return (max(a[0], b[0]),)


@broadcast_gradient_args_op.shape
def _(s0, s1):
    a, b = constant_value(s0), constant_value(s1)
    if a is None or b is None:
        return [(None,), (None,)]
    return [(len(axes),) for axes in _stretched(a.tolist(), b.tolist())]


def _broadcast(a: list[int], b: list[int]) -> list[int]:
    try:
        return list(np.broadcast_shapes(tuple(a), tuple(b)))
    except ValueError:
        raise InvalidArgumentError(
            None, None, f"Shapes {a} and {b} cannot be broadcast together"
        ) from None


def _stretched(a: list[int], b: list[int]) -> tuple[list[int], list[int]]:
    """The axes of the broadcast shape over which each input's gradient must be summed.

    Where both sizes are 1 there is nothing to sum, but TensorFlow lists the axis, which
    does no harm either.
    """
    if a == b:
        return [], []
    rank = len(_broadcast(a, b))
    padded = [[1] * (rank - len(s)) + s for s in (a, b)]
    lists: tuple[list[int], list[int]] = ([], [])
    for axis in range(rank):
        x, y = padded[0][axis], padded[1][axis]
        if x == 1:
            lists[0].append(axis)
        if y == 1:
            lists[1].append(axis)
    return lists


@broadcast_args_op.kernel
def _(xp, s0, s1):
    return np.array(_broadcast(s0.tolist(), s1.tolist()), s0.dtype)


@broadcast_gradient_args_op.kernel
def _(xp, s0, s1):
    return [np.array(axes, s0.dtype) for axes in _stretched(s0.tolist(), s1.tolist())]


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape, as a tensor, that tensors of two shapes have when broadcast together.

    Example:
        >>> tf.broadcast_dynamic_shape([1, 2, 3], [5, 1, 3])  # [5, 2, 3]
    """
    return broadcast_args_op(shape_x, shape_y)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The static shape that tensors of two static shapes have when broadcast together.

    Example:
        >>> tf.broadcast_static_shape(tf.TensorShape([1, 2]), tf.TensorShape([5, 2]))  # [5, 2]
    """
    return TensorShape(broadcast_dims(TensorShape(shape_x)._dims, TensorShape(shape_y)._dims))


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Coordinate tensors of the grid that vectors span.

    ``indexing="xy"`` (the default) puts the first vector along the second dimension, as in a
    picture; ``"ij"`` along the first.

    Example:
        >>> x, y = tf.meshgrid([1, 2, 3], [4, 5])  # both of shape [2, 3]
    """
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"{next(iter(kwargs))!r} is an invalid keyword argument for meshgrid")
    if indexing not in ("xy", "ij"):
        raise ValueError("Argument `indexing` must be either 'xy' or 'ij'")
    with name_scope(name, "meshgrid", list(args)):
        lines = [reshape(convert_to_tensor(a), [-1]) for a in args]
        order = list(range(len(lines)))
        if indexing == "xy" and len(lines) > 1:
            order[0], order[1] = 1, 0
        sizes: Any = [line.dims[0] if line.dims else None for line in lines]
        sizes = [size_of(x) if n is None else n for x, n in zip(lines, sizes, strict=True)]
        whole: list[Any] = [None] * len(lines)
        for n, axis in zip(sizes, order, strict=True):
            whole[axis] = n
        grids = []
        for line, axis in zip(lines, order, strict=True):
            line = reshape(line, [-1 if d == axis else 1 for d in range(len(lines))])
            grids.append(broadcast_to(line, whole))
        return grids
