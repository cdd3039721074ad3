"""Sums, maxima and softmax of the elements of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value, constant_value_as_dims
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import reshape
from runnel.ops.gather import gather_nd
from runnel.ops.ranges import range as positions
from runnel.ops.sparse.arithmetic import cwise_add_op
from runnel.ops.sparse.coordinates import (
    NUMBERS,
    REALS,
    as_sparse,
    new_group,
    require_sparse,
    row_order,
    sparse_op,
)

_PARTS = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32"
_SPARSE = "output_indices: int64, output_values: T, output_shape: int64"


def _axes(axes: np.ndarray, rank: int) -> list[int]:
    found = []
    for axis in np.asarray(axes).reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                None, None, f"Invalid reduction dimension {axis}, for input with {rank} dimensions"
            )
        found.append(axis % rank)
    return sorted(set(found))


def _groups(
    ufunc: np.ufunc, indices: np.ndarray, values: np.ndarray, shape: np.ndarray, axes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """The coordinates that are left, the reduction of the elements of each, and the axes."""
    require_sparse(indices, values, shape)
    gone = _axes(axes, len(shape))
    kept = [d for d in range(len(shape)) if d not in gone]
    rest = indices[:, kept]
    order = row_order(rest)
    rest, values = rest[order], values[order]
    starts = np.flatnonzero(new_group(rest))
    if not len(starts):
        return rest, values, gone
    return rest[starts], ufunc.reduceat(values, starts, dtype=values.dtype), gone


def _kept_shape(shape: np.ndarray, gone: list[int], keep_dims: bool) -> list[int]:
    if keep_dims:
        return [1 if d in gone else n for d, n in enumerate(shape.tolist())]
    return [n for d, n in enumerate(shape.tolist()) if d not in gone]


def _dense_dims(indices: Tensor, values: Tensor, shape: Tensor, axes: Tensor, keep: bool) -> Any:
    known, chosen = constant_value_as_dims(shape), constant_value(axes)
    if known is None or chosen is None:
        return None
    try:
        gone = _axes(chosen, len(known))
    except InvalidArgumentError as error:
        raise ValueError(error.message) from None
    if keep:
        return tuple(1 if d in gone else n for d, n in enumerate(known))
    return tuple(n for d, n in enumerate(known) if d not in gone)


def _reduction(name: str, types: str, ufunc: np.ufunc) -> tuple[OpDef, OpDef]:
    attrs = ["keep_dims: bool = false", f"T: {types}"]
    to_dense = sparse_op(
        f"SparseReduce{name}", _PARTS, "output: T", attrs, differentiable=name == "Sum"
    )
    to_sparse = sparse_op(f"SparseReduce{name}Sparse", _PARTS, _SPARSE, attrs)

    @to_dense.shape
    def _(indices, values, shape, axes, *, keep_dims):
        return _dense_dims(indices, values, shape, axes, keep_dims)

    @to_dense.kernel
    def _(xp, indices, values, shape, axes, *, keep_dims):
        places, found, gone = _groups(ufunc, indices, values, shape, axes)
        out = np.zeros(_kept_shape(shape, gone, False), values.dtype)
        out[tuple(places.T) if places.shape[1] else ()] = (
            found if places.shape[1] else (found[0] if len(found) else 0)
        )
        return out.reshape(_kept_shape(shape, gone, keep_dims))

    @to_sparse.shape
    def _(indices, values, shape, axes, *, keep_dims):
        return [(None, None), (None,), (None,)]

    @to_sparse.kernel
    def _(xp, indices, values, shape, axes, *, keep_dims):
        places, found, gone = _groups(ufunc, indices, values, shape, axes)
        if keep_dims:
            whole = np.zeros((len(places), len(shape)), np.int64)
            whole[:, [d for d in range(len(shape)) if d not in gone]] = places
            places = whole
        return places, found, np.array(_kept_shape(shape, gone, keep_dims), np.int64)

    return to_dense, to_sparse


sum_op, sum_sparse_op = _reduction("Sum", NUMBERS, np.add)
max_op, max_sparse_op = _reduction("Max", REALS, np.maximum)


@sum_op.gradient
def _(op, grad):
    indices, _, shape, axes = op.inputs
    kept = _shape_with_ones(shape, axes)
    back = gather_nd(reshape(grad, kept), indices // (shape // kept))
    return [None, back, None, None]


def _shape_with_ones(shape: Tensor, axes: Tensor) -> Tensor:
    """``shape`` with 1 for the dimensions that were summed over."""
    rank = get_op_def("Size")(shape)
    chosen = reshape(axes, [-1])
    places = (chosen + rank) % rank
    stitch = get_op_def("DynamicStitch")
    ones = get_op_def("Cast")(get_op_def("OnesLike")(chosen), DstT=dtypes.int64)
    return stitch([positions(rank), places], [shape, ones])


softmax_op = sparse_op(
    "SparseSoftmax",
    "sp_indices: int64, sp_values: T, sp_shape: int64",
    "output: T",
    "T: {half, float, double}",
    differentiable=True,
)


@softmax_op.shape
def _(indices, values, shape):
    return values.dims


@softmax_op.kernel
def _(xp, indices, values, shape):
    require_sparse(indices, values, shape)
    if len(shape) < 2:
        raise InvalidArgumentError(None, None, f"Input must have rank at least 2, not {len(shape)}")
    rows = indices[:, :-1]
    order = row_order(rows)
    sorted_values = values[order]
    fresh = new_group(rows[order])
    starts = np.flatnonzero(fresh)
    if not len(starts):
        return values.copy()
    group = np.cumsum(fresh) - 1
    powers = np.exp(sorted_values - np.maximum.reduceat(sorted_values, starts)[group])
    shares = powers / np.add.reduceat(powers, starts, dtype=powers.dtype)[group]
    out = np.empty_like(values)
    out[order] = shares
    return out


@softmax_op.gradient
def _(op, grad):
    indices, _, shape = op.inputs
    out = op.outputs[0]
    total = sum_op(indices, out * grad, shape, [-1], keep_dims=True)
    return [None, cwise_add_op(indices, grad, shape, -total) * out, None]


def _all_axes(sparse: SparseTensor, axis: Any) -> Any:
    if axis is not None:
        return convert_to_tensor(axis, dtypes.int32)
    return positions(0, get_op_def("Size")(sparse.dense_shape), 1)


def _reduced(op_def: OpDef, sp_input: Any, axis: Any, old_axis: Any, keep: Any) -> Any:
    sparse = as_sparse(sp_input)
    axes = _all_axes(sparse, old_axis if axis is None else axis)
    return op_def(sparse.indices, sparse.values, sparse.dense_shape, axes, keep_dims=bool(keep))


def sparse_reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Sums over ``axis``, or over everything, as a dense tensor.

    Example:
        >>> tf.sparse.reduce_sum(tf.SparseTensor([[0, 0], [0, 2]], [1, 1], [2, 3]), 1)  # [2, 0]
    """
    return _reduced(sum_op, sp_input, axis, reduction_axes, keepdims or keep_dims)


def sparse_reduce_sum_sparse(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """Sums over ``axis``, or over everything, as a sparse tensor."""
    return SparseTensor(
        *_reduced(sum_sparse_op, sp_input, axis, reduction_axes, keepdims or keep_dims)
    )


def sparse_reduce_max(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Maxima, of the elements that are there, over ``axis`` or everything, as a dense tensor."""
    return _reduced(max_op, sp_input, axis, reduction_axes, keepdims or keep_dims)


def sparse_reduce_max_sparse(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """Maxima, of the elements that are there, over ``axis`` or everything, as a sparse tensor."""
    return SparseTensor(
        *_reduced(max_sparse_op, sp_input, axis, reduction_axes, keepdims or keep_dims)
    )


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Softmax over the last dimension, of the elements that are there."""
    sparse = as_sparse(sp_input)
    values = softmax_op(sparse.indices, sparse.values, sparse.dense_shape, name=name)
    return SparseTensor(sparse.indices, values, sparse.dense_shape)
