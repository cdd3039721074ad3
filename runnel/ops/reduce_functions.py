"""``tf.reduce_*``: functions over the reduction ops, with TensorFlow's old and new arguments."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import constant_tensor, convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def
from runnel.ops.casting import cast
from runnel.ops.control import stop_gradient
from runnel.ops.reduction import (
    all_op,
    any_op,
    euclidean_norm_op,
    max_op,
    mean_op,
    min_op,
    prod_op,
    sum_op,
)


def one_of(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that has an older name; giving both is an error."""
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{new_name}' and '{old_name}'")
    return old


def _all_axes(x: Tensor) -> Tensor:
    if x.dims is not None:
        return constant_tensor(list(range(len(x.dims))), dtypes.int32)
    zero, one = constant_tensor(0, dtypes.int32), constant_tensor(1, dtypes.int32)
    return get_op_def("Range")(zero, get_op_def("Rank")(x), one)


def _reduce(
    op_def: OpDef,
    x: Any,
    axis: Any,
    keepdims: Any,
    name: str | None,
    reduction_indices: Any = None,
    keep_dims: Any = None,
    dtype: Any = None,
) -> Tensor:
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    x = convert_to_tensor(x, dtype=dtype, name="input_tensor")
    if axis is None:
        output = op_def(x, _all_axes(x), keep_dims=keep, name=name)
        if not keep and output.dims is None:
            output.set_shape(())
        return output
    return op_def(x, axis, keep_dims=keep, name=name)


def reduce_sum(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The sum over ``axis`` (an index or a list of them; all by default).

    ``keepdims`` keeps the reduced axes with size 1. ``reduction_indices`` and ``keep_dims``
    are the older names of ``axis`` and ``keepdims``.

    Example:
        >>> x = tf.constant([[1, 1, 1], [1, 1, 1]])
        >>> tf.Session().run([tf.reduce_sum(x), tf.reduce_sum(x, 0)])
        [6, array([2, 2, 2], dtype=int32)]
    """
    return _reduce(sum_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_mean(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The mean over ``axis``; the mean of integers is an integer, rounded towards zero."""
    return _reduce(mean_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_prod(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The product over ``axis``."""
    return _reduce(prod_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_max(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The largest element over ``axis``."""
    return _reduce(max_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_min(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The smallest element over ``axis``."""
    return _reduce(min_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_all(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether all elements over ``axis`` are true."""
    return _reduce(
        all_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims, dtypes.bool_
    )


def reduce_any(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether any element over ``axis`` is true."""
    return _reduce(
        any_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims, dtypes.bool_
    )


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares over ``axis``."""
    return _reduce(euclidean_norm_op, input_tensor, axis, keepdims, name)


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean of the squared distances to the mean over ``axis``."""
    with name_scope(name, "reduce_variance", [input_tensor]):
        x = convert_to_tensor(input_tensor)
        if x.dtype.is_integer:
            raise TypeError(f"reduce_variance takes floating point numbers, not {x.dtype.name}")
        difference = x - reduce_mean(x, axis, keepdims=True)
        if x.dtype.is_complex:
            size = get_op_def("ComplexAbs")(difference, Tout=x.dtype.base_dtype.real_dtype)
            return reduce_mean(get_op_def("Square")(size), axis, keepdims)
        return reduce_mean(get_op_def("Square")(difference), axis, keepdims)


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The standard deviation over ``axis``."""
    with name_scope(name, "reduce_std", [input_tensor]):
        return get_op_def("Sqrt")(reduce_variance(input_tensor, axis, keepdims))


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """``log(sum(exp(x)))`` over ``axis``, without overflow or underflow.

    Example:
        >>> tf.Session().run(tf.reduce_logsumexp([1000.0, 1000.0]))
        1000.6931
    """
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "ReduceLogSumExp", [input_tensor]) as scope:
        x = convert_to_tensor(input_tensor, name="input_tensor")
        raw = reduce_max(x, axis, keepdims=True)
        zero = constant_tensor(0, x.dtype.base_dtype)
        # Subtracting an infinite maximum would give NaN.
        largest = stop_gradient(get_op_def("SelectV2")(get_op_def("IsFinite")(raw), raw, zero))
        total = reduce_sum(get_op_def("Exp")(x - largest), axis, keepdims=keep)
        result = get_op_def("Log")(total)
        if not keep:
            largest = get_op_def("Reshape")(largest, get_op_def("Shape")(result))
        return get_op_def("AddV2")(result, largest, name=scope)


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,  # noqa: A002 (TensorFlow's name)
) -> Tensor:
    """How many elements over ``axis`` are not zero (not false, not the empty string)."""
    given = one_of("input", input, "input_tensor", input_tensor)
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "count_nonzero", [given]):
        x = convert_to_tensor(given, name="input")
        zero: Any = b"" if x.dtype.base_dtype is dtypes.string else 0
        if x.dtype.is_bool:
            zero = False
        differs = get_op_def("NotEqual")(x, constant_tensor(zero, x.dtype.base_dtype))
        total = reduce_sum(cast(differs, dtypes.int64), axis, keepdims=keep)
        return cast(total, as_dtype(dtype))
