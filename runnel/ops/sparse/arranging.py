"""Elements of sparse tensors in another order or place: sorted, reshaped, transposed."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.registry import get_op_def
from runnel.graph.sparse_tensor import SparseTensor, SparseTensorValue
from runnel.ops.array_shape import reshape, size
from runnel.ops.casting import cast
from runnel.ops.gather import gather
from runnel.ops.joining import concat
from runnel.ops.ranges import range as positions
from runnel.ops.reduce_functions import reduce_max
from runnel.ops.selection import where
from runnel.ops.sparse.coordinates import (
    as_sparse,
    require_sparse,
    row_order,
    sparse_op,
)
from runnel.ops.transposition import transpose

_PARTS = "input_indices: int64, input_values: T, input_shape: int64"

reorder_op = sparse_op(
    "SparseReorder", _PARTS, "output_indices: int64, output_values: T", differentiable=True
)
reshape_op = sparse_op(
    "SparseReshape",
    "input_indices: int64, input_shape: int64, new_shape: int64",
    "output_indices: int64, output_shape: int64",
    attrs="",
)


@reorder_op.shape
def _(indices, values, shape):
    return [indices.dims, values.dims]


@reorder_op.kernel
def _(xp, indices, values, shape):
    require_sparse(indices, values, shape)
    order = row_order(indices)
    return indices.take(order, 0), values.take(order)


@reorder_op.gradient
def _(op, indices_grad, values_grad):
    indices, values, shape = op.inputs
    places = positions(size(values))
    moved = reorder_op(indices, places, shape)[1]
    back = get_op_def("InvertPermutation")(moved)
    return [None, gather(values_grad, back), None]


@reshape_op.shape
def _(indices, shape, new_shape):
    count = indices.dims[0] if indices.dims is not None else None
    rank = new_shape.dims[0] if new_shape.dims is not None else None
    return [(count, rank), (rank,)]


@reshape_op.kernel
def _(xp, indices, shape, new_shape):
    old, new = shape.tolist(), new_shape.tolist()
    total = prod(old)
    if new.count(-1) > 1:
        raise InvalidArgumentError(None, None, f"Only one output dimension may be -1, not {new}")
    if -1 in new:
        known = prod([d for d in new if d != -1])
        if not known or total % known:
            raise InvalidArgumentError(
                None, None, f"A tensor of {total} elements cannot be reshaped to {new}"
            )
        new = [total // known if d == -1 else d for d in new]
    if new == old:
        return indices, shape
    if prod(new) != total:
        raise InvalidArgumentError(
            None, None, f"A tensor of shape {old} cannot be reshaped to {new}: the sizes differ"
        )
    if len(indices) and old:
        flat = np.ravel_multi_index(tuple(indices.T), old)
        moved = np.stack(np.unravel_index(flat, new), axis=1) if new else flat[:, None][:, :0]
    else:
        moved = np.zeros((len(indices), len(new)))
    return moved.astype(np.int64), np.array(new, np.int64)


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Its elements in the order of rows, which many operations require.

    Example:
        >>> tf.sparse.reorder(tf.SparseTensor([[1], [0]], ["b", "a"], [2]))  # "a", then "b"
    """
    sparse = as_sparse(sp_input)
    indices, values = reorder_op(sparse.indices, sparse.values, sparse.dense_shape, name=name)
    return SparseTensor(indices, values, sparse.dense_shape)


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """Its elements in another shape; one dimension may be -1.

    Example:
        >>> tf.sparse.reshape(tf.SparseTensor([[0, 1]], [5], [2, 2]), [4])  # 5 at [1]
    """
    sparse = as_sparse(sp_input)
    wanted = cast(convert_to_tensor(shape, name="shape"), dtypes.int64)
    with name_scope(name, "SparseReshape", [sparse.values]) as scope:
        indices, new_shape = reshape_op(sparse.indices, sparse.dense_shape, wanted, name=scope)
        known = constant_value_as_dims(wanted)
        if known is not None and None not in known and -1 not in known:
            new_shape = wanted
        return SparseTensor(indices, sparse.values, new_shape)


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Its dimensions in the order ``perm``, or reversed.

    Example:
        >>> tf.sparse.transpose(tf.SparseTensor([[0, 1]], [5], [2, 3]))  # 5 at [1, 0] of [3, 2]
    """
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseTranspose", [sparse.values]):
        if perm is None:
            rank = get_op_def("Size")(sparse.dense_shape)
            perm = (rank - 1) - positions(0, rank, 1)
        columns = gather(transpose(sparse.indices), perm)
        moved = SparseTensor(transpose(columns), sparse.values, gather(sparse.dense_shape, perm))
        return sparse_reorder(moved)


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """Only the elements for which ``to_retain``, a vector of bools, is true."""
    sparse = as_sparse(sp_input)
    kept = reshape(where(convert_to_tensor(to_retain)), [-1])
    return SparseTensor(
        gather(sparse.indices, kept), gather(sparse.values, kept), sparse.dense_shape
    )


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a shape that is larger, or the smallest that holds them.

    Example:
        >>> tf.sparse.reset_shape(tf.SparseTensor([[0, 1]], [5], [7, 7]))  # of shape [1, 2]
    """
    from runnel.ops.assertions import assert_less_equal
    from runnel.ops.control import identity

    sparse = as_sparse(sp_input)
    indices, values = identity(sparse.indices), identity(sparse.values)
    old = identity(sparse.dense_shape)
    if new_shape is None:
        tight = reduce_max(indices, 0) + 1
        return SparseTensor(indices, values, get_op_def("Maximum")(tight, zeros_of(tight)))
    wanted = cast(convert_to_tensor(new_shape), dtypes.int64)
    known, now = constant_value_as_dims(wanted), constant_value_as_dims(old)
    if known is not None and now is not None:
        if len(known) != len(now):
            raise ValueError(f"new_shape {known} must have the rank of the input, {len(now)}")
        if any(a is not None and b is not None and a < b for a, b in zip(known, now, strict=True)):
            raise ValueError(f"new_shape {known} is smaller than that of the input, {now}")
    check = assert_less_equal(old, wanted)
    with control_dependencies([check] if check is not None else []):
        wanted = identity(wanted)
    return SparseTensor(indices, values, wanted)


def zeros_of(tensor: Any) -> Any:
    """Zeros like ``tensor``."""
    return get_op_def("ZerosLike")(tensor)


def sparse_expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """With a dimension of size 1 at ``axis``, or at the end."""
    sparse = as_sparse(sp_input)
    with name_scope(name, "expand_dims", [sparse.values]):
        rank = sparse.dense_shape.dims[0] if sparse.dense_shape.dims else None
        if rank is None:
            raise ValueError("The rank of the sparse tensor must be known to add a dimension.")
        at = -1 if axis is None else int(axis)
        at = at + rank + 1 if at < 0 else at
        column = zeros_of(sparse.indices[:, :1]) if rank else None
        if column is None:
            raise ValueError("A sparse tensor without dimensions cannot be expanded.")
        indices = concat([sparse.indices[:, :at], column, sparse.indices[:, at:]], 1)
        one = convert_to_tensor(np.ones(1, np.int64))
        shape = concat([sparse.dense_shape[:at], one, sparse.dense_shape[at:]], 0)
        return SparseTensor(indices, sparse.values, shape)


def sparse_eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = dtypes.float32, name: Any = None
) -> SparseTensor:
    """A sparse matrix with ones on its diagonal."""
    columns = num_rows if num_columns is None else num_columns
    kind = dtypes.as_dtype(dtype).np_dtype
    with name_scope(name, "eye", []):
        places = np.arange(min(num_rows, columns), dtype=np.int64)
        value = SparseTensorValue(
            np.stack([places, places], 1), np.ones(len(places), kind), [num_rows, columns]
        )
        return SparseTensor.from_value(value)
