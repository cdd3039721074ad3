"""Tensors filled with one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import unchanged
from runnel.graph.shapes import as_dims, format_dims, is_fully_defined, num_elements
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.block_value import RowBlocks

fill_op = register_op(
    "Fill",
    inputs="dims: index_type, value: T",
    outputs="output: T",
    attrs=["T: type", "index_type: {int32, int64} = DT_INT32"],
    static_inputs=("dims",),
)


@fill_op.shape
def _(dims, value):
    if dims.dims is not None and len(dims.dims) != 1:
        raise ValueError(f"dims must be a vector, not of shape {format_dims(dims.dims)}")
    if value.dims not in (None, ()):
        raise ValueError(f"value must be a scalar, not of shape {format_dims(value.dims)}")
    return constant_value_as_dims(dims)


@fill_op.kernel
def _(xp, dims, value):
    return xp.full(_filled_dims(dims, value), value, value.dtype)


def _filled_dims(dims: Any, value: Any) -> list[int]:
    wanted = dims.tolist()
    if min(wanted, default=0) < 0:
        raise InvalidArgumentError(None, None, f"dims must not be negative, but are {wanted}")
    if value.ndim:
        raise InvalidArgumentError(
            None, None, f"value must be a scalar, not of shape {format_dims(value.shape)}"
        )
    return wanted


def _fill_in_blocks(dims: Any, value: Any) -> RowBlocks:
    wanted = _filled_dims(dims, value)
    dtype = value.dtype
    return RowBlocks(
        wanted, dtype, lambda start, stop: np.full((stop - start, *wanted[1:]), value, dtype)
    )


fill_op.block_kernel = _fill_in_blocks


@fill_op.gradient
def _(op, grad):
    from runnel.ops.reduce_functions import reduce_sum

    return [None, reduce_sum(grad)]


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape ``dims`` whose elements are all ``value``.

    Example:
        >>> tf.fill([2, 2], 7)  # [[7, 7], [7, 7]]
    """
    return fill_op(dims, value, name=name)


zeros_like_op = register_op("ZerosLike", inputs="x: T", outputs="y: T", attrs="T: type")
ones_like_op = register_op(
    "OnesLike",
    inputs="x: T",
    outputs="y: T",
    attrs="T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
    "uint64, complex64, complex128, bool}",
    differentiable=False,
)
zeros_like_op.shape(unchanged)
ones_like_op.shape(unchanged)


def _zero(dtype: DType) -> Any:
    if dtype is dtypes.string:
        return b""
    return False if dtype.is_bool else 0


@zeros_like_op.kernel
def _(xp, x, *, T):  # noqa: N803
    if T is dtypes.string:
        return np.full(np.shape(x), b"", object)
    return xp.zeros(x.shape, x.dtype)


@zeros_like_op.gradient
def _(op, grad):
    return None


@ones_like_op.kernel
def _(xp, x):
    return xp.ones(x.shape, x.dtype)


_SMALL = 1000  # elements of a constant that is stored whole in the graph, as TensorFlow does


def _filled(shape: Any, value: Any, dtype: Any, name: str | None, default_name: str) -> Tensor:
    dtype = as_dtype(dtype).base_dtype
    if not isinstance(shape, Tensor):
        try:
            dims = as_dims(shape)
        except TypeError:  # some dimension is a tensor
            dims = None
        count = num_elements(dims)
        if count is not None and count < _SMALL:
            return constant_tensor(value, dtype, dims, name or default_name)
    with name_scope(name, default_name, [shape]) as scope:
        if not isinstance(shape, Tensor):
            shape = convert_to_tensor(shape, dtypes.int32, "shape_as_tensor")
        if shape.dims == ():
            shape = reshape(shape, [-1])
        return fill_op(shape, constant_tensor(value, dtype), name=scope)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (empty strings, False).

    Example:
        >>> tf.zeros([2, 3], tf.int32)  # [[0, 0, 0], [0, 0, 0]]
    """
    return _filled(shape, _zero(as_dtype(dtype)), dtype, name, "zeros")


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones.

    Example:
        >>> tf.ones([2, 3], tf.int32)  # [[1, 1, 1], [1, 1, 1]]
    """
    one = True if as_dtype(dtype).is_bool else 1
    return _filled(shape, one, dtype, name, "ones")


def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros in the shape (and, unless ``dtype`` is given, of the type) of ``tensor``.

    Example:
        >>> tf.zeros_like([[1, 2, 3], [4, 5, 6]])  # [[0, 0, 0], [0, 0, 0]]
    """
    with name_scope(name, "zeros_like", [tensor]) as scope:
        x = convert_to_tensor(tensor, name="tensor")
        wanted = x.dtype.base_dtype if dtype is None else as_dtype(dtype)
        if wanted is x.dtype.base_dtype and not (optimize and is_fully_defined(x.dims)):
            return zeros_like_op(x, name=scope)
        if (num_elements(x.dims) or _SMALL) < _SMALL:
            skip_op_ids(-2)
        return zeros(shape_of(x, optimize=optimize), wanted, name=scope)


def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones in the shape (and, unless ``dtype`` is given, of the type) of ``tensor``.

    Example:
        >>> tf.ones_like([[1, 2, 3], [4, 5, 6]])  # [[1, 1, 1], [1, 1, 1]]
    """
    with name_scope(name, "ones_like", [tensor]) as scope:
        x = convert_to_tensor(tensor, name="tensor")
        wanted = x.dtype.base_dtype if dtype is None else as_dtype(dtype)
        if wanted is x.dtype.base_dtype and not (optimize and is_fully_defined(x.dims)):
            return ones_like_op(x, name=scope)
        return ones(shape_of(x, optimize=optimize), wanted, name=scope)
