"""The operations on ragged tensors: how many elements come out is data, so they run on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value_as_dims
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.broadcast_gradient import unbroadcast
from runnel.ops.comparison import less
from runnel.ops.fill import zeros_like
from runnel.ops.joining import concat
from runnel.ops.ranges import range as sequence
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.segments import unsorted_segment_sum
from runnel.ops.selection import where_v2

SPLITS = "Tsplits: {int32, int64} = DT_INT64"

ragged_range_op = register_op(
    "RaggedRange",
    inputs="starts: T, limits: T, deltas: T",
    outputs="rt_nested_splits: Tsplits, rt_dense_values: T",
    attrs=["T: {bfloat16, float, double, int32, int64} = DT_INT32", SPLITS],
    host=True,
    differentiable=False,
)
ragged_gather_op = register_op(
    "RaggedGather",
    inputs="params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, params_dense_values: Tvalues, "
    "indices: Tindices",
    outputs="output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues",
    attrs=[
        "Tvalues: type",
        "Tindices: {int32, int64}",
        SPLITS,
        "PARAMS_RAGGED_RANK: int >= 1",
        "OUTPUT_RAGGED_RANK: int >= 0",
    ],
    host=True,
)
ragged_to_tensor_op = register_op(
    "RaggedTensorToTensor",
    inputs="shape: Tshape, values: T, default_value: T, "
    "row_partition_tensors: num_row_partition_tensors * Tindex",
    outputs="result: T",
    attrs=[
        "T: type",
        "Tindex: {int64, int32}",
        "Tshape: {int64, int32}",
        "num_row_partition_tensors: int >= 1",
        "row_partition_types: list(string)",
    ],
    host=True,
)
ragged_to_sparse_op = register_op(
    "RaggedTensorToSparse",
    inputs="rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T",
    outputs="sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
    attrs=["RAGGED_RANK: int >= 1", "T: type", SPLITS],
    host=True,
)


def _names(kinds: Any) -> list[str]:
    """The kinds of row partitions, which an imported graph has as bytes."""
    return [kind.decode() if isinstance(kind, bytes) else kind for kind in kinds]


def _refuse(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


def require_splits(splits: np.ndarray, count: int) -> None:
    """An error unless ``splits`` cut ``count`` values into rows."""
    if splits.ndim != 1 or not splits.size or splits[0] != 0:
        raise _refuse(f"row splits must be a vector that begins with 0, not {splits.tolist()}")
    if (np.diff(splits) < 0).any():
        raise _refuse(f"row splits must not decrease: {splits.tolist()}")
    if splits[-1] != count:
        raise _refuse(f"The last row split is {splits[-1]}, but there are {count} values")


# Ranges -----------------------------------------------------------------------------------------


@ragged_range_op.shape
def _(starts, limits, deltas):
    rows = [t.dims[0] for t in (starts, limits, deltas) if t.dims]
    known = next((r for r in rows if r is not None), None)
    if not rows and None not in (starts.dims, limits.dims, deltas.dims):
        known = 1
    return [(None if known is None else known + 1,), (None,)]


@ragged_range_op.kernel
def _(xp, starts, limits, deltas, *, Tsplits):  # noqa: N803
    try:
        begin, end, step = np.broadcast_arrays(*map(np.atleast_1d, (starts, limits, deltas)))
    except ValueError:
        raise _refuse(
            "starts, limits, and deltas must have the same shape, not "
            f"{[list(v.shape) for v in (starts, limits, deltas)]}"
        ) from None
    if (step == 0).any():
        raise _refuse("Requires delta != 0")
    if begin.dtype.kind == "i":
        counts = np.maximum(-((begin - end) // step), 0)
    else:
        wide = [v.astype(np.float64) for v in (begin, end, step)]
        counts = np.maximum(np.ceil((wide[1] - wide[0]) / wide[2]), 0).astype(np.int64)
    splits = np.concatenate([[0], np.cumsum(counts)]).astype(Tsplits.np_dtype)
    places = np.arange(splits[-1]) - np.repeat(splits[:-1], counts)
    values = np.repeat(begin, counts) + places.astype(begin.dtype) * np.repeat(step, counts)
    return splits, values.astype(begin.dtype)


# Rows -------------------------------------------------------------------------------------------


@ragged_gather_op.shape
def _(splits, values, indices, *, OUTPUT_RAGGED_RANK):  # noqa: N803
    inner = None if values.dims is None else (None, *values.dims[1:])
    return [*[(None,)] * OUTPUT_RAGGED_RANK, inner]


@ragged_gather_op.kernel
def _(xp, splits, values, indices, *, Tsplits):  # noqa: N803
    rows = len(splits[0]) - 1
    if indices.size and not ((indices >= 0) & (indices < rows)).all():
        bad = indices[(indices < 0) | (indices >= rows)].reshape(-1)[0]
        raise _refuse(f"indices must be in [0, {rows}), but one is {bad}")
    outer = dense_splits(indices.shape, Tsplits.np_dtype)
    chosen = indices.reshape(-1)
    inner = []
    for cuts in splits:
        starts, lengths = cuts[:-1][chosen], np.diff(cuts)[chosen]
        made = np.concatenate([[0], np.cumsum(lengths)]).astype(Tsplits.np_dtype)
        chosen = np.arange(made[-1]) - np.repeat(made[:-1] - starts, lengths)
        inner.append(made)
    return [*outer, *inner, values[chosen]]


def dense_splits(shape: tuple[int, ...], dtype: Any) -> list[np.ndarray]:
    """The splits of a tensor of that shape: all rows of a dimension have the same length."""
    made, count = [], 1
    for axis, size in enumerate(shape[1:], 1):
        count *= shape[axis - 1]
        made.append((np.arange(count + 1) * size).astype(dtype))
    return made


@ragged_gather_op.gradient
def _(op, *grads):
    *splits, values, indices = op.inputs
    count = shape_of(values)[0]
    numbered = ragged_gather_op(
        splits,
        sequence(count),
        indices,
        Tsplits=op.get_attr("Tsplits"),
        OUTPUT_RAGGED_RANK=op.get_attr("OUTPUT_RAGGED_RANK"),
    )
    places = numbered[-1]
    slices = IndexedSlices(grads[-1], places, shape_of(values))
    return [*[None] * len(splits), slices, None]


# Dense ------------------------------------------------------------------------------------------


def _inner_dims(shape: Any, values: Any, partitions: int) -> Dims:
    known = constant_value_as_dims(shape)
    if known is None or values.dims is None:
        return None
    return tuple(None if d is None or d < 0 else d for d in known)


def _ragged_rank(kinds: Any) -> int:
    return len(kinds) - (_names(kinds)[0] == "FIRST_DIM_SIZE")


@ragged_to_tensor_op.shape
def _(shape, values, default_value, partitions, *, row_partition_types):
    ragged = _ragged_rank(row_partition_types)
    if shape.dims == ():
        if values.dims is None:
            return None
        return (*[None] * (ragged + 1), *values.dims[1:])
    dims = _inner_dims(shape, values, ragged)
    if dims is None or values.dims is None:
        return dims
    tail = values.dims[1:]
    return (*dims[: ragged + 1], *(a if b is None else b for a, b in zip(dims[ragged + 1 :], tail)))


def coordinates(partitions: list[np.ndarray], kinds: list[str]) -> tuple[list[np.ndarray], int]:
    """Where each value stands along the ragged dimensions, and the number of rows."""
    kinds, partitions = list(kinds), list(partitions)
    if kinds[0] == "FIRST_DIM_SIZE":
        rows = int(partitions.pop(0))
        kinds.pop(0)
    else:
        rows = len(partitions[0]) - 1
    places, count = [np.arange(rows)], rows
    for part, kind in zip(partitions, kinds, strict=True):
        if kind == "ROW_SPLITS":
            if len(part) != count + 1:
                raise _refuse(f"{len(part)} row splits where {count} rows need {count + 1}")
            parents = np.repeat(np.arange(count), np.diff(part))
            starts = part[:-1]
        elif kind == "VALUE_ROWIDS":
            parents = part
            if part.size and ((np.diff(part) < 0).any() or part[0] < 0 or part[-1] >= count):
                raise _refuse(f"value_rowids must be sorted and in [0, {count}): {part.tolist()}")
            starts = np.searchsorted(part, np.arange(count))
        else:
            raise _refuse(f"Unsupported row partition type {kind}")
        within = np.arange(len(parents)) - starts[parents]
        places = [*(place[parents] for place in places), within]
        count = len(parents)
    return places, rows


@ragged_to_tensor_op.kernel
def _(xp, shape, values, default_value, partitions, *, row_partition_types):
    places, rows = coordinates(partitions, _names(row_partition_types))
    if len(values) != len(places[0]):
        raise _refuse(f"There are {len(values)} values, but the rows have {len(places[0])}")
    natural = [rows, *(int(p.max(initial=-1)) + 1 for p in places[1:]), *values.shape[1:]]
    wanted = shape.tolist() if shape.ndim else [-1] * len(natural)
    if len(wanted) != len(natural):
        raise _refuse(f"shape {wanted} must have {len(natural)} dimensions")
    sizes = [size if want < 0 else want for want, size in zip(wanted, natural, strict=True)]
    if sizes[len(places) :] != list(values.shape[1:]):
        raise _refuse(f"shape {wanted} does not fit to values of shape {list(values.shape)}")
    out = np.empty(sizes, values.dtype)
    out[...] = default_value
    fits = np.ones(len(values), bool)
    for place, size in zip(places, sizes, strict=False):
        fits &= place < size
    out[tuple(place[fits] for place in places)] = values[fits]
    return out


@ragged_to_tensor_op.gradient
def _(op, grad):
    _, values, default_value, *partitions = op.inputs
    kinds = op.get_attr("row_partition_types")
    ragged = _ragged_rank(kinds)
    outer = shape_of(grad)[: ragged + 1]
    # Which value stands where; -1 where the default does.
    count = shape_of(values)[0]
    numbers = ragged_to_tensor_op(outer, sequence(count), -1, partitions, row_partition_types=kinds)
    inner = shape_of(values)[1:]
    rows = reshape(grad, concat([[-1], inner], 0))
    to_values = unsorted_segment_sum(rows, reshape(numbers, [-1]), count)
    empty = less(reshape(numbers, concat([[-1], 0 * inner + 1], 0)), 0)
    unset = reduce_sum(where_v2(empty, rows, zeros_like(rows)), axis=0)
    to_default = unbroadcast(default_value, unset, unset, None)[0]
    return [None, reshape(to_values, shape_of(values)), to_default, *[None] * len(partitions)]


# Sparse -----------------------------------------------------------------------------------------


@ragged_to_sparse_op.shape
def _(splits, values):
    rank = None if values.dims is None else len(splits) + len(values.dims)
    return [(None, rank), (None,), (rank,)]


@ragged_to_sparse_op.kernel
def _(xp, splits, values):
    require_splits(splits[-1], len(values))
    places, rows = coordinates(splits, ["ROW_SPLITS"] * len(splits))
    inner = values.shape[1:]
    each = int(np.prod(inner, dtype=np.int64))
    grid = np.indices(inner).reshape(len(inner), each).T
    outer = np.stack(places, axis=1).astype(np.int64)
    indices = np.concatenate(
        [np.repeat(outer, each, axis=0), np.tile(grid, (len(values), 1))], axis=1
    )
    sizes = [rows, *(int(p.max(initial=-1)) + 1 for p in places[1:]), *inner]
    return indices.astype(np.int64), values.reshape(-1), np.array(sizes, np.int64)


@ragged_to_sparse_op.gradient
def _(op, _, grad, __):
    *splits, values = op.inputs
    return [*[None] * len(splits), reshape(grad, shape_of(values))]
