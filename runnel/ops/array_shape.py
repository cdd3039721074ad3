"""A tensor's shape as a value, and the same elements in another shape."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value, constant_value_as_dims
from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import scalar
from runnel.graph.shapes import (
    Dims,
    TensorShape,
    compatible_dims,
    format_dims,
    is_fully_defined,
    merge_dims,
    num_elements,
)

_OUT_TYPE = "out_type: {int32, int64} = DT_INT32"


def resolve_axis(axis: Any, rank: int, what: str = "axis") -> int:
    """``axis`` counted from the front; one that is out of range is a ValueError."""
    axis = int(axis)
    if not -rank <= axis < rank:
        raise ValueError(f"{what} {axis} is not in [{-rank}, {rank}) for a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


# The shape as a value -------------------------------------------------------------------------

shape_op = register_op(
    "Shape",
    inputs="input: T",
    outputs="output: out_type",
    attrs=["T: type", _OUT_TYPE],
    known_from_shapes=True,
    differentiable=False,
)
shape_n_op = register_op(
    "ShapeN",
    inputs="input: N * T",
    outputs="output: N * out_type",
    attrs=["N: int >= 1", "T: type", _OUT_TYPE],
    known_from_shapes=True,
    differentiable=False,
)
size_op = register_op(
    "Size",
    inputs="input: T",
    outputs="output: out_type",
    attrs=["T: type", _OUT_TYPE],
    known_from_shapes=True,
    differentiable=False,
)
rank_op = register_op(
    "Rank",
    inputs="input: T",
    outputs="output: int32",
    attrs="T: type",
    known_from_shapes=True,
    differentiable=False,
)
size_op.shape(scalar)
rank_op.shape(scalar)


@shape_op.shape
def _(x):
    return (None,) if x.dims is None else (len(x.dims),)


@shape_op.kernel
def _(xp, x, *, out_type):
    return np.array(np.shape(x), out_type.np_dtype)


@shape_n_op.shape
def _(tensors):
    return [(None,) if t.dims is None else (len(t.dims),) for t in tensors]


@shape_n_op.kernel
def _(xp, values, *, out_type):
    return [np.array(np.shape(value), out_type.np_dtype) for value in values]


@size_op.kernel
def _(xp, x, *, out_type):
    return np.array(np.prod(np.shape(x), dtype=np.int64), out_type.np_dtype)


@rank_op.kernel
def _(xp, x):
    return np.array(len(np.shape(x)), np.int32)


def shape(
    input: Any,  # noqa: A002
    name: str | None = None,
    out_type: Any = dtypes.int32,
    optimize: bool = True,
) -> Tensor:
    """The shape of ``input`` when the step runs, as a vector.

    With ``optimize`` a shape that is known already becomes a constant.

    Example:
        >>> tf.shape(tf.zeros([2, 3]))  # [2, 3]
    """
    if isinstance(input, IndexedSlices):
        if input.dense_shape is None:
            raise ValueError(f"{input} does not say the shape of the tensor it is a part of")
        from runnel.ops.casting import cast

        return cast(input.dense_shape, out_type)
    x = convert_to_tensor(input)
    if optimize and is_fully_defined(x.dims):
        return constant_tensor(np.array(x.dims), dtypes.as_dtype(out_type), None, name or "Shape")
    return shape_op(x, out_type=out_type, name=name)


def shape_n(
    input: list[Any], out_type: Any = dtypes.int32, name: str | None = None
) -> list[Tensor]:  # noqa: A002
    """The shapes of several tensors of one type."""
    return shape_n_op(list(input), out_type=out_type, name=name)


def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:  # noqa: A002
    """The number of elements of ``input``.

    Example:
        >>> tf.size(tf.zeros([2, 3]))  # 6
    """
    x = convert_to_tensor(input)
    if is_fully_defined(x.dims):
        return constant_tensor(
            x.shape.num_elements(), dtypes.as_dtype(out_type), None, name or "Size"
        )
    return size_op(x, out_type=out_type, name=name)


def rank(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The number of dimensions of ``input``.

    Example:
        >>> tf.rank(tf.zeros([2, 3]))  # 2
    """
    x = convert_to_tensor(input)
    if x.dims is not None:
        return constant_tensor(len(x.dims), dtypes.int32, None, name or "Rank")
    return rank_op(x, name=name)


# Reshape --------------------------------------------------------------------------------------

reshape_op = register_op(
    "Reshape",
    inputs="tensor: T, shape: Tshape",
    outputs="output: T",
    attrs=["T: type", "Tshape: {int32, int64} = DT_INT32"],
    static_inputs=("shape",),
)


@reshape_op.shape
def _(x, shape):
    if shape.dims is not None and len(shape.dims) != 1:
        raise ValueError(f"shape must be a vector, not of shape {format_dims(shape.dims)}")
    given = constant_value(shape)
    if given is not None and is_fully_defined(x.dims):
        return resolve_shape(x.dims, given.tolist())
    wanted = constant_value_as_dims(shape)
    if given is None and wanted is not None and wanted.count(None) == 1:
        return _with_the_one_unknown(wanted, num_elements(x.dims))
    return wanted


def _with_the_one_unknown(wanted: tuple[int | None, ...], count: int | None) -> Dims:
    """``wanted``, whose unknown dimension follows from the number of elements."""
    others = prod(d for d in wanted if d is not None)
    if count is None or not others or count % others:
        return wanted
    return tuple([count // others if d is None else d for d in wanted])


def resolve_shape(dims: tuple[int, ...], wanted: list[int]) -> tuple[int, ...]:
    """``wanted`` with its -1, if any, replaced so that it holds as many elements as ``dims``."""
    count = 1
    for d in dims:
        count *= d
    known = 1
    missing = None
    for i, d in enumerate(wanted):
        if d == -1:
            if missing is not None:
                raise ValueError(f"Only one dimension of a shape can be -1, not two: {wanted}")
            missing = i
        elif d < 0:
            raise ValueError(f"A dimension must be at least 0, or -1, not {d}: {wanted}")
        else:
            known *= d
    if missing is None:
        if known != count:
            raise ValueError(
                f"Cannot reshape a tensor of shape {format_dims(dims)} with {count} elements to "
                f"{wanted} ({known} elements)"
            )
        return tuple(wanted)
    if known == 0 or count % known:
        raise ValueError(
            f"Cannot reshape a tensor of shape {format_dims(dims)} with {count} elements to "
            f"{wanted}: no size in place of -1 gives that many"
        )
    wanted[missing] = count // known
    return tuple(wanted)


@reshape_op.kernel
def _(xp, x, shape):
    wanted = shape.tolist()
    if list(x.shape) == wanted:  # as in most gradients of what may have been broadcast
        return x
    return x.reshape(at_run_time(resolve_shape, x.shape, wanted))


def at_run_time(function: Any, *arguments: Any) -> Any:
    """A mistake in a value is an InvalidArgumentError once the step runs."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise InvalidArgumentError(None, None, str(error)) from None


@reshape_op.gradient
def _(op, grad):
    return [reshape(grad, shape(op.inputs[0])), None]


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The elements of ``tensor`` in another shape; one dimension may be -1, to be inferred.

    Example:
        >>> tf.reshape(tf.range(6), [2, -1])  # [[0, 1, 2], [3, 4, 5]]
    """
    result = reshape_op(tensor, shape, name=name)
    return result


# Dimensions of size 1 -------------------------------------------------------------------------

expand_dims_op = register_op(
    "ExpandDims",
    inputs="input: T, dim: Tdim",
    outputs="output: T",
    attrs=["T: type", "Tdim: {int32, int64} = DT_INT32"],
    static_inputs=("dim",),
)


@expand_dims_op.shape
def _(x, dim):
    if x.dims is None:
        return None
    axis = constant_value(dim)
    if axis is None:
        return (None,) * (len(x.dims) + 1)
    if axis.size != 1:
        raise ValueError(f"axis must be one number, not {axis.tolist()}")
    at = resolve_axis(axis.reshape(()), len(x.dims) + 1)
    return (*x.dims[:at], 1, *x.dims[at:])


@expand_dims_op.kernel
def _(xp, x, dim):
    at = at_run_time(resolve_axis, dim.reshape(()), x.ndim + 1)
    return x.reshape((*x.shape[:at], 1, *x.shape[at:]))


@expand_dims_op.gradient
def _(op, grad):
    return [reshape(grad, shape(op.inputs[0])), None]


def expand_dims(
    input: Any,  # noqa: A002
    axis: Any = None,
    name: str | None = None,
    dim: Any = None,
) -> Tensor:
    """``input`` with a dimension of size 1 inserted before ``axis`` (``dim`` is its old name).

    Example:
        >>> tf.expand_dims(tf.zeros([2, 3]), -1)  # shape [2, 3, 1]
    """
    if dim is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'dim'")
        axis = dim
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return expand_dims_op(input, axis, name=name)


squeeze_op = register_op(
    "Squeeze",
    inputs="input: T",
    outputs="output: T",
    attrs=["T: type", "squeeze_dims: list(int) >= 0 = []"],
)


def _squeezed(dims: tuple[int | None, ...], axes: list[int]) -> Dims:
    if not axes:
        return None if None in dims else tuple(d for d in dims if d != 1)
    drop = {resolve_axis(axis, len(dims)) for axis in axes}
    for axis in sorted(drop):
        if dims[axis] not in (1, None):
            raise ValueError(f"Cannot squeeze dimension {axis} of size {dims[axis]}; it must be 1")
    return tuple(d for i, d in enumerate(dims) if i not in drop)


@squeeze_op.shape
def _(x, *, squeeze_dims):
    return None if x.dims is None else _squeezed(x.dims, squeeze_dims)


@squeeze_op.kernel
def _(xp, x, *, squeeze_dims):
    return x.reshape(at_run_time(_squeezed, x.shape, squeeze_dims))


@squeeze_op.gradient
def _(op, grad):
    return reshape(grad, shape(op.inputs[0]))


def squeeze(
    input: Any,  # noqa: A002
    axis: Any = None,
    name: str | None = None,
    squeeze_dims: Any = None,
) -> Tensor:
    """``input`` without its dimensions of size 1, or without those in ``axis``.

    Example:
        >>> tf.squeeze(tf.zeros([1, 2, 1]), [0])  # shape [2, 1]
    """
    if squeeze_dims is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'squeeze_dims'")
        axis = squeeze_dims
    if axis is None:
        axis = []
    elif not isinstance(axis, list | tuple | np.ndarray):
        axis = [axis]
    return squeeze_op(input, squeeze_dims=axis, name=name)


# Asserting a shape ----------------------------------------------------------------------------

ensure_shape_op = register_op(
    "EnsureShape", inputs="input: T", outputs="output: T", attrs=["shape: shape", "T: type"]
)


@ensure_shape_op.shape
def _(x, *, shape):
    return merge_dims(x.dims, shape._dims)


@ensure_shape_op.kernel
def _(xp, x, *, shape):
    if not compatible_dims(x.shape, shape._dims):
        raise InvalidArgumentError(
            None,
            None,
            f"Shape of the tensor {format_dims(x.shape)} is not compatible with the expected "
            f"shape {shape}",
        )
    return x


@ensure_shape_op.gradient
def _(op, grad):
    return grad


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """``x``, with an error when the step runs if it does not have (partly known) ``shape``.

    Example:
        >>> tf.ensure_shape(tf.placeholder(tf.float32), [None, 28, 28])
    """
    return ensure_shape_op(x, shape=TensorShape(shape), name=name or "EnsureShape")
