"""Reducing runs of rows that belong to the same segment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, compatible_dims, format_dims
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.fill import ones
from runnel.ops.gather import gather
from runnel.ops.segments import (
    MAX,
    MIN,
    NUMBERS,
    PROD,
    REALS,
    SUM,
    SegmentReduction,
    extreme_gradient,
    like_rows,
    product_gradient,
    reduce_runs,
)


def _sorted_dims(data: Tensor, segment_ids: Tensor) -> Dims:
    if segment_ids.dims is not None and len(segment_ids.dims) != 1:
        raise ValueError(f"segment_ids must be a vector, not of shape {segment_ids.shape}")
    if data.dims is None:
        return None
    if segment_ids.dims is not None and not compatible_dims(data.dims[:1], segment_ids.dims):
        raise ValueError(
            f"segment_ids {format_dims(segment_ids.dims)} must have an id for each row of data "
            f"{format_dims(data.dims)}"
        )
    ids = constant_value(segment_ids)
    count = None if ids is None or not ids.size else int(ids[-1]) + 1
    return (count, *data.dims[1:])


def _sorted(name: str, types: str, reduce: Callable[[np.ndarray, np.ndarray, int], Any]) -> OpDef:
    op_def = register_op(
        f"Segment{name}",
        inputs="data: T, segment_ids: Tindices",
        outputs="output: T",
        attrs=[f"T: {types}", "Tindices: {int32, int64}"],
        host=True,  # the number of segments is data
    )
    op_def.shape(_sorted_dims)

    @op_def.kernel
    def _(xp, data, segment_ids, *, check):
        check(
            segment_ids.shape == data.shape[:1],
            lambda: (
                f"segment_ids {format_dims(segment_ids.shape)} must have an id for each row of "
                f"data {format_dims(data.shape)}"
            ),
        )
        ascending = segment_ids.size == 0 or (
            segment_ids[0] >= 0 and (segment_ids[1:] >= segment_ids[:-1]).all()
        )
        check(ascending, lambda: f"segment ids are not increasing from 0: {segment_ids.tolist()}")
        count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
        return reduce(data, segment_ids, count)

    return op_def


def _plain(reduction: SegmentReduction, empty: int) -> Callable[[np.ndarray, np.ndarray, int], Any]:
    def reduce(data: np.ndarray, ids: np.ndarray, count: int) -> np.ndarray:
        out = np.full((count, *data.shape[1:]), empty, data.dtype)
        reduce_runs(reduction.ufunc, out, ids, data)
        return out

    return reduce


def _mean(data: np.ndarray, ids: np.ndarray, count: int) -> np.ndarray:
    total = _plain(SUM, 0)(data, ids, count)
    sizes = np.maximum(np.bincount(ids, minlength=count), 1)
    sizes = sizes.reshape((-1, *(1,) * (data.ndim - 1)))
    if data.dtype.kind in "iu":
        return (np.sign(total) * (np.abs(total) // sizes)).astype(data.dtype)
    return (total / sizes).astype(data.dtype)


segment_sum_op = _sorted("Sum", NUMBERS, _plain(SUM, 0))
segment_mean_op = _sorted("Mean", NUMBERS, _mean)
segment_prod_op = _sorted("Prod", NUMBERS, _plain(PROD, 1))
segment_max_op = _sorted("Max", REALS, _plain(MAX, 0))
segment_min_op = _sorted("Min", REALS, _plain(MIN, 0))


@segment_sum_op.gradient
def _(op, grad):
    return [gather(grad, op.inputs[1]), None]


@segment_mean_op.gradient
def _(op, grad):
    data, ids = op.inputs
    sizes = segment_sum_op(ones(shape_of(ids), data.dtype.base_dtype), ids)
    return [gather(grad / like_rows(sizes, grad), ids), None]


for _op in (segment_max_op, segment_min_op):

    @_op.gradient
    def _(op, grad):
        return extreme_gradient(op, grad, segment_sum_op)


@segment_prod_op.gradient
def _(op, grad):
    return product_gradient(op, grad, segment_sum_op, segment_prod_op)


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Sums of the runs of rows with the same id; ids are sorted.

    Example:
        >>> tf.math.segment_sum([1, 2, 3], [0, 0, 1])  # [3, 3]
    """
    return segment_sum_op(data, segment_ids, name=name)


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Means of the runs of rows with the same id; ids are sorted."""
    return segment_mean_op(data, segment_ids, name=name)


def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Products of the runs of rows with the same id; ids are sorted."""
    return segment_prod_op(data, segment_ids, name=name)


def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Maxima of the runs of rows with the same id; ids are sorted."""
    return segment_max_op(data, segment_ids, name=name)


def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Minima of the runs of rows with the same id; ids are sorted."""
    return segment_min_op(data, segment_ids, name=name)
