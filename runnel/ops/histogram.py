"""Counts of values in bins of equal width, of classes by classes, and places in a flat order."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.arithmetic import maximum, minimum
from runnel.ops.array_shape import reshape
from runnel.ops.assertions import assert_less, assert_non_negative
from runnel.ops.casting import cast
from runnel.ops.control import with_dependencies
from runnel.ops.fill import ones_like
from runnel.ops.joining import stack
from runnel.ops.reduce_functions import reduce_max
from runnel.ops.rounding import floor
from runnel.ops.scatter_nd import scatter_nd

histogram_op = register_op(
    "HistogramFixedWidth",
    inputs="values: T, value_range: T, nbins: int32",
    outputs="out: dtype",
    attrs=["T: {int32, int64, float, double}", "dtype: {int32, int64} = DT_INT32"],
    static_inputs=("nbins",),
    differentiable=False,
)
unravel_index_op = register_op(
    "UnravelIndex",
    inputs="indices: Tidx, dims: Tidx",
    outputs="output: Tidx",
    attrs="Tidx: {int32, int64} = DT_INT32",
    differentiable=False,
)


@histogram_op.shape
def _(values, value_range, nbins):
    known = constant_value(nbins)
    return (None if known is None else int(known),)


@histogram_op.kernel
def _(xp, values, value_range, nbins, *, dtype, check):
    count = int(nbins)
    if count <= 0:
        raise InvalidArgumentError(None, None, f"nbins should be a positive number, not {count}")
    low, high = value_range[0], value_range[1]
    check(low < high, lambda: f"value_range must ascend, not {value_range.tolist()}")
    step = (high - low).astype(np.float64) / count
    places = (values.reshape(-1) - low).astype(np.float64) / step
    bins = xp.clip(places, 0, count - 1).astype(np.int64)  # towards zero, which is down
    return xp.bincount(bins, minlength=count)[:count].astype(dtype.np_dtype)


@unravel_index_op.shape
def _(indices, dims):
    rank = dims.dims[0] if dims.dims else None
    if indices.dims is None:
        return None
    return (rank, *indices.dims)


@unravel_index_op.kernel
def _(xp, indices, dims, *, check):
    if dims.ndim != 1:
        raise InvalidArgumentError(None, None, f"dims must be a vector, not {list(dims.shape)}")
    total = xp.prod(dims)
    inside = xp.all((indices >= 0) & (indices < total))
    check(inside, lambda: f"index is out of bound as with dims {dims.tolist()}")
    found, rest = [], indices
    for axis in range(dims.shape[0] - 1, -1, -1):
        size = xp.maximum(dims[axis], 1)
        found.append(rest % size)
        rest = rest // size
    if not found:
        return xp.zeros((0, *indices.shape), indices.dtype)
    return xp.stack(found[::-1]).astype(indices.dtype)


def histogram_fixed_width(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How many ``values`` fall into each of ``nbins`` equal parts of ``value_range``.

    What lies below counts for the first, what lies above for the last.
    """
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        values = convert_to_tensor(values)
        limits = convert_to_tensor(value_range, values.dtype)
        return histogram_op(values, limits, nbins, dtype=as_dtype(dtype), name=scope)


def histogram_fixed_width_bins(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """The bin of each of ``values``, as :func:`histogram_fixed_width` has them."""
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        limits: Any = convert_to_tensor(value_range, values.dtype)
        count: Any = cast(nbins, values.dtype)
        scaled = (values - limits[0]) / (limits[1] - limits[0])
        kind = as_dtype(dtype)
        bins = cast(floor(count * scaled), kind)
        last = cast(convert_to_tensor(nbins) - 1, kind)
        return minimum(maximum(bins, cast(0, kind)), last)


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """The coordinates of flat ``indices`` in an array of shape ``dims``, one row for each.

    Example:
        >>> tf.unravel_index([2, 5, 7], [3, 3])  # [[0, 1, 2], [2, 2, 1]]
    """
    return unravel_index_op(indices, dims, name=name)


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """How often each class (the rows) was predicted as each (the columns).

    Example:
        >>> tf.confusion_matrix([1, 2, 2], [1, 0, 2])
    """
    with name_scope(name, "confusion_matrix", [labels, predictions, num_classes]):
        found = [
            reshape(cast(convert_to_tensor(v), dtypes.int64), [-1]) for v in (labels, predictions)
        ]
        if num_classes is None:
            count: Any = maximum(reduce_max(found[0]), reduce_max(found[1])) + 1
        else:
            count = cast(num_classes, dtypes.int64)
        checked = [
            with_dependencies(
                [
                    assert_non_negative(v, message=f"`{what}` contains negative values."),
                    assert_less(v, count, message=f"`{what}` out of bound"),
                ],
                v,
            )
            for v, what in zip(found, ("labels", "predictions"), strict=True)
        ]
        kind = as_dtype(dtype)
        ones = ones_like(checked[0], kind) if weights is None else cast(weights, kind)
        places = stack(checked, axis=1)
        return scatter_nd(places, ones, cast(stack([count, count]), dtypes.int64))
