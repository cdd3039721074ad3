"""Sparse tensors made dense, and dense ones made sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.array_shape import expand_dims, size
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.fill import fill, zeros_like
from runnel.ops.gather import gather_nd
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.scatter_update import combine_at
from runnel.ops.selection import where
from runnel.ops.sparse.coordinates import as_sparse
from runnel.ops.sparse.merging import sparse_merge

sparse_to_dense_op = register_op(
    "SparseToDense",
    inputs="sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T",
    outputs="dense: T",
    attrs=["validate_indices: bool = true", "T: type", "Tindices: {int32, int64}"],
    static_inputs=("output_shape",),
)


@sparse_to_dense_op.shape
def _(indices, shape, values, default):
    if indices.dims is not None and len(indices.dims) > 2:
        raise ValueError(f"sparse_indices must be a matrix at most, not {indices.shape}")
    return constant_value_as_dims(shape)


@sparse_to_dense_op.kernel
def _(xp, indices, shape, values, default, *, validate_indices, check):
    dims = tuple(np.asarray(shape).tolist())
    if indices.ndim < 2:
        indices = indices.reshape((-1, 1))
    check(
        indices.shape[1] == len(dims),
        lambda: f"sparse_indices {indices.shape} do not have a column for each of {len(dims)}",
    )
    check(
        values.ndim == 0 or values.shape == indices.shape[:1],
        lambda: f"sparse_values {values.shape} must be one for each of {indices.shape[0]} indices",
    )
    if xp is np and dims and indices.size:
        places = _flat(indices, dims, check)
        if validate_indices:
            check((places[1:] > places[:-1]).all(), lambda: _disorder(indices))
        dense = np.full(dims, default, values.dtype)
        dense.reshape(-1)[places] = values
        return dense
    bounds = xp.asarray(np.array(dims, np.int64))
    inside = xp.all((indices >= 0) & (indices < bounds))
    check(inside, lambda: _outside(indices, dims))
    if validate_indices and indices.shape[0] > 1:
        check(_ascending(xp, indices), lambda: _disorder(np.asarray(indices)))
    dense = xp.full(dims, default, values.dtype)
    spread = xp.broadcast_to(values, indices.shape[:1])
    return combine_at(xp, dense, tuple(indices[:, d] for d in range(len(dims))), spread, "set")


def _flat(indices: np.ndarray, dims: tuple[int, ...], check: Any) -> np.ndarray:
    """The places of coordinates, in bounds, among all elements of a tensor that fits in memory."""
    places: Any = None
    for column, width in zip(indices.T, dims, strict=True):
        inside = column.min() >= 0 and column.max() < width
        check(inside, lambda: _outside(indices, dims))
        places = column if places is None else places.astype(np.int64) * width + column
    return places


def _outside(indices: Any, dims: tuple[int, ...]) -> str:
    return f"An index of {np.asarray(indices).tolist()} is out of bounds of {list(dims)}"


def _ascending(xp: Any, indices: Any) -> Any:
    """Whether each row of coordinates comes after the one before, without building a number."""
    before, after = indices[:-1], indices[1:]
    less: Any = xp.zeros(before.shape[0], bool)
    equal: Any = xp.ones(before.shape[0], bool)
    for d in range(indices.shape[1]):
        less = less | (equal & (before[:, d] < after[:, d]))
        equal = equal & (before[:, d] == after[:, d])
    return xp.all(less)


def _disorder(indices: np.ndarray) -> str:
    rows = [tuple(row) for row in indices.tolist()]
    at = next(i for i in range(1, len(rows)) if rows[i - 1] >= rows[i])
    how = "is repeated" if rows[at - 1] == rows[at] else "is out of order"
    return f"indices[{at}] = {list(rows[at])} {how}. Many sparse ops require sorted indices."


@sparse_to_dense_op.gradient
def _(op, grad):
    indices = op.inputs[0]
    if indices.dims is not None and len(indices.dims) == 1:
        indices = expand_dims(indices, 1)
    elif indices.dims == ():
        indices = expand_dims(expand_dims(indices, 0), 0)
    found = gather_nd(grad, indices)
    values = reduce_sum(found) if op.inputs[2].dims == () else found
    return [None, None, values, reduce_sum(grad) - reduce_sum(found)]


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor of ``output_shape`` with ``sparse_values`` at some places.

    Example:
        >>> tf.sparse_to_dense([1, 3], [4], 5)  # [0, 5, 0, 5]
    """
    values = convert_to_tensor(sparse_values)
    default = default_value
    if not isinstance(default, Tensor):
        if values.dtype.base_dtype is dtypes.string and isinstance(default, int):
            default = ""
        default = convert_to_tensor(default, values.dtype.base_dtype)
    return sparse_to_dense_op(
        sparse_indices,
        output_shape,
        values,
        default,
        validate_indices=validate_indices,
        name=name,
    )


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """A sparse tensor made dense, with ``default_value`` where it has no element.

    Example:
        >>> tf.sparse.to_dense(tf.SparseTensor([[1]], [5.0], [3]))  # [0, 5, 0]
    """
    sparse = as_sparse(sp_input)
    if default_value is None:
        default_value = "" if sparse.dtype.base_dtype is dtypes.string else 0
    if not isinstance(default_value, Tensor):
        kind = sparse.dtype.base_dtype
        default_value = convert_to_tensor(
            bool(default_value) if kind is dtypes.bool_ else default_value, kind
        )
    return sparse_to_dense_op(
        sparse.indices,
        sparse.dense_shape,
        sparse.values,
        default_value,
        validate_indices=validate_indices,
        name=name,
    )


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of ``tensor`` that are not zero (or empty).

    Example:
        >>> tf.sparse.from_dense([[0, 3], [4, 0]])  # 3 at [0, 1], 4 at [1, 0]
    """
    with name_scope(name, "dense_to_sparse", [tensor]):
        dense = convert_to_tensor(tensor)
        indices = where(get_op_def("NotEqual")(dense, zeros_like(dense)))
        values = gather_nd(dense, indices)
        return SparseTensor(indices, values, shape_of(dense, out_type=dtypes.int64))


def sparse_to_indicator(sp_input: Any, vocab_size: int, name: str | None = None) -> Tensor:
    """For each row of ids, which of ``vocab_size`` ids it has.

    Example:
        >>> ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [2, 0, 1], [2, 2])
        >>> tf.sparse.to_indicator(ids, 3)  # [[True, False, True], [False, True, False]]
    """
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseToIndicator", [sparse.values]) as scope:
        there = fill(expand_dims(size(sparse.values), 0), convert_to_tensor(True))
        values = SparseTensor(sparse.indices, there, sparse.dense_shape)
        merged = sparse_merge(sparse, values, vocab_size)
        # An id may stand twice in a row.
        return sparse_tensor_to_dense(merged, False, validate_indices=False, name=scope)
