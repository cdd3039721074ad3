"""Sparse tensors cut into pieces and put together: slices, splits, concatenations, empty rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def
from runnel.graph.sparse_tensor import SparseTensor
from runnel.ops.casting import cast
from runnel.ops.joining import concat
from runnel.ops.sparse.coordinates import (
    NUMBERS,
    as_sparse,
    matrix_dims,
    require_sparse,
    row_order,
    sparse_op,
)

_OUT = "output_indices: int64, output_values: T, output_shape: int64"

slice_op = sparse_op(
    "SparseSlice",
    "indices: int64, values: T, shape: int64, start: int64, size: int64",
    _OUT,
    differentiable=True,
)
slice_grad_op = sparse_op(
    "SparseSliceGrad",
    "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64",
    "val_grad: T",
    f"T: {NUMBERS}",
)
concat_op = sparse_op(
    "SparseConcat",
    "indices: N * int64, values: N * T, shapes: N * int64",
    _OUT,
    ["concat_dim: int", "N: int >= 2", "T: type"],
)
split_op = sparse_op(
    "SparseSplit",
    "split_dim: int64, indices: int64, values: T, shape: int64",
    "output_indices: num_split * int64, output_values: num_split * T, "
    "output_shape: num_split * int64",
    ["num_split: int >= 1", "T: type"],
)
fill_empty_rows_op = sparse_op(
    "SparseFillEmptyRows",
    "indices: int64, values: T, dense_shape: int64, default_value: T",
    "output_indices: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
    differentiable=True,
)
fill_empty_rows_grad_op = sparse_op(
    "SparseFillEmptyRowsGrad",
    "reverse_index_map: int64, grad_values: T",
    "d_values: T, d_default_value: T",
)


# Slices -----------------------------------------------------------------------------------------


@slice_op.shape
def _(indices, values, shape, start, size):
    return [matrix_dims(indices, shape), (None,), shape.dims]


def _inside(indices: np.ndarray, start: np.ndarray, end: np.ndarray) -> Any:
    return ((indices >= start) & (indices < end)).all(axis=1)


@slice_op.kernel
def _(xp, indices, values, shape, start, size):
    require_sparse(indices, values, shape)
    if not start.shape == size.shape == shape.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"start {start.tolist()} and size {size.tolist()} must have a number for each of "
            f"{len(shape)} dimensions",
        )
    if (start < 0).any() or (size < 0).any():
        raise InvalidArgumentError(
            None, None, f"start {start.tolist()} and size {size.tolist()} must not be negative"
        )
    kept = np.maximum(np.minimum(size, shape - start), 0)
    chosen = _inside(indices, start, start + kept)
    return indices[chosen] - start, values[chosen], kept


@slice_grad_op.shape
def _(grad, indices, start, output_indices):
    return (indices.dims[0],) if indices.dims is not None else (None,)


@slice_grad_op.kernel
def _(xp, grad, indices, start, output_indices):
    out = np.zeros(len(indices), grad.dtype)
    place = {tuple(row): i for i, row in enumerate((output_indices + start).tolist())}
    for i, row in enumerate(indices.tolist()):
        found = place.get(tuple(row))
        if found is not None:
            out[i] = grad[found]
    return out


@slice_op.gradient
def _(op, indices_grad, values_grad, shape_grad):
    grad = slice_grad_op(values_grad, op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, grad, None, None, None]


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The elements from ``start`` on, of a part of shape ``size``.

    Example:
        >>> tf.sparse.slice(tf.SparseTensor([[0, 1]], [5], [2, 3]), [0, 1], [2, 2])  # 5 at [0, 0]
    """
    sparse = as_sparse(sp_input)
    start = convert_to_tensor(start, dtypes.int64)
    size = convert_to_tensor(size, dtypes.int64)
    with name_scope(name, "SparseSlice", [sparse.values]) as scope:
        parts = slice_op(sparse.indices, sparse.values, sparse.dense_shape, start, size, name=scope)
        return SparseTensor(*parts)


# Concatenation and splits -----------------------------------------------------------------------


@concat_op.shape
def _(indices, values, shapes):
    return [matrix_dims(indices[0], shapes[0]), (None,), shapes[0].dims]


@concat_op.kernel
def _(xp, indices, values, shapes, *, concat_dim):
    rank = len(shapes[0])
    axis = concat_dim + rank if concat_dim < 0 else concat_dim
    if not 0 <= axis < rank:
        raise InvalidArgumentError(
            None, None, f"Concat dimension must be in range [{-rank}, {rank}), not {concat_dim}"
        )
    offset, moved = 0, []
    for i, (places, items, shape) in enumerate(zip(indices, values, shapes, strict=True)):
        require_sparse(places, items, shape, f"Input {i}")
        others = np.arange(rank) != axis
        if len(shape) != rank or (shape[others] != shapes[0][others]).any():
            raise InvalidArgumentError(
                None,
                None,
                f"Concat dimensions other than {axis} must agree, but input {i} has the shape "
                f"{shape.tolist()} and input 0 {shapes[0].tolist()}",
            )
        step = np.zeros(rank, np.int64)
        step[axis] = offset
        moved.append(places + step)
        offset += int(shape[axis])
    joined, items = np.concatenate(moved), np.concatenate(values)
    order = row_order(joined)
    whole = np.array(shapes[0], np.int64)
    whole[axis] = offset
    return joined[order], items[order], whole


@split_op.shape
def _(axis, indices, values, shape, *, num_split):
    return [
        *[matrix_dims(indices, shape)] * num_split,
        *[(None,)] * num_split,
        *[shape.dims] * num_split,
    ]


@split_op.kernel
def _(xp, axis, indices, values, shape, *, num_split):
    require_sparse(indices, values, shape)
    rank, at = len(shape), int(np.asarray(axis).reshape(-1)[0])
    at = at + rank if at < 0 else at
    if not 0 <= at < rank:
        raise InvalidArgumentError(
            None, None, f"Input split_dim should be between 0 and rank ({rank}), got {at}"
        )
    if not 1 <= num_split <= shape[at]:
        raise InvalidArgumentError(
            None, None, f"num_split must be between 1 and {shape[at]}, not {num_split}"
        )
    each, extra = divmod(int(shape[at]), num_split)  # the first ones have one more
    sizes = [each + (i < extra) for i in range(num_split)]
    ends = np.cumsum(sizes)
    parts = []
    for end, size in zip(ends.tolist(), sizes, strict=True):
        chosen = (indices[:, at] >= end - size) & (indices[:, at] < end)
        places = indices[chosen]
        places[:, at] -= end - size
        piece = np.array(shape, np.int64)
        piece[at] = size
        parts.append((places, values[chosen], piece))
    return [part[k] for k in range(3) for part in parts]


def sparse_concat(
    axis: int | None = None,
    sp_inputs: Any = None,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Sparse tensors one after the other along ``axis``.

    With ``expand_nonconcat_dims`` the other dimensions are the largest of each.
    """
    at = concat_dim if axis is None else axis
    if at is None:
        raise ValueError("axis must be given")
    inputs = [as_sparse(one, "sp_inputs") for one in sp_inputs]
    if len(inputs) == 1:
        return inputs[0]
    shapes = [one.dense_shape for one in inputs]
    if expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims:
        largest = get_op_def("Max")(get_op_def("Pack")(shapes, axis=0), 0)
        last = shapes[0].dims[0] if at < 0 and shapes[0].dims is not None else 0
        place = at + (last or 0) if at < 0 else at
        shapes = [
            concat([largest[:place], shape[place : place + 1], largest[place + 1 :]], 0)
            for shape in shapes
        ]
    parts = concat_op(
        [one.indices for one in inputs],
        [one.values for one in inputs],
        shapes,
        concat_dim=at,
        name=name,
    )
    return SparseTensor(*parts)


def sparse_split(
    keyword_required: Any = None,
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """``num_split`` parts along ``axis``; the first ones are larger by one if need be.

    Arguments are given by name.
    """
    if keyword_required is not None:
        raise ValueError("Keyword arguments are required for this function.")
    at = split_dim if axis is None else axis
    if sp_input is None or num_split is None or at is None:
        raise ValueError("sp_input, num_split and axis are required")
    sparse = as_sparse(sp_input)
    parts = split_op(
        cast(convert_to_tensor(at), dtypes.int64),
        sparse.indices,
        sparse.values,
        sparse.dense_shape,
        num_split=num_split,
        name=name,
    )
    return [SparseTensor(*part) for part in zip(*parts, strict=True)]


# Empty rows -------------------------------------------------------------------------------------


@fill_empty_rows_op.shape
def _(indices, values, shape, default):
    return [matrix_dims(indices, shape), (None,), (None,), values.dims]


@fill_empty_rows_op.kernel
def _(xp, indices, values, shape, default):
    require_sparse(indices, values, shape)
    rows, count = int(shape[0]), len(values)
    if not rows and count:
        raise InvalidArgumentError(None, None, "The tensor has no rows, but elements")
    own = indices[:, 0]
    was_empty = np.bincount(own, minlength=rows) == 0 if rows else np.zeros(0, bool)
    empty = np.flatnonzero(was_empty)
    if not len(empty) and (own[1:] >= own[:-1]).all():
        return indices, values, was_empty, np.arange(count)
    filled = np.zeros((len(empty), len(shape)), np.int64)
    filled[:, 0] = empty
    all_rows = np.concatenate([own, empty])
    order = np.argsort(all_rows, kind="stable")
    places = np.concatenate([indices, filled])[order]
    defaults = np.empty(len(empty), values.dtype)
    defaults[...] = np.asarray(default, values.dtype)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return places, np.concatenate([values, defaults])[order], was_empty, back[:count]


@fill_empty_rows_grad_op.shape
def _(back, grad):
    return [back.dims, ()]


@fill_empty_rows_grad_op.kernel
def _(xp, back, grad):
    own = np.zeros(len(grad), bool)
    own[back] = True
    return grad[back], np.sum(grad[~own], dtype=grad.dtype)


@fill_empty_rows_op.gradient
def _(op, indices_grad, values_grad, empty_grad, back_grad):
    values, default = fill_empty_rows_grad_op(op.outputs[3], values_grad)
    return [None, values, None, default]


def sparse_fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """A matrix with ``default_value`` in the first column of empty rows, and which rows those are.

    Example:
        >>> filled, was_empty = tf.sparse.fill_empty_rows(matrix, -1)
    """
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows", [sparse.values]):
        default = convert_to_tensor(default_value, sparse.values.dtype.base_dtype)
        indices, values, empty, _ = fill_empty_rows_op(
            sparse.indices, sparse.values, sparse.dense_shape, default
        )
        return SparseTensor(indices, values, sparse.dense_shape), empty
