"""Picking slices by index, and the sparse gradient of that."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import colocate_with
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import Dims, format_dims, merge_dims
from runnel.ops import densify as densify  # registers what makes IndexedSlices dense
from runnel.ops.array_shape import at_run_time, reshape, resolve_axis, size
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.bounds import in_range
from runnel.ops.joining import concat, stack
from runnel.ops.segments import unsorted_segment_sum
from runnel.ops.transposition import transpose

gather_op = register_op(
    "GatherV2",
    inputs="params: Tparams, indices: Tindices, axis: Taxis",
    outputs="output: Tparams",
    attrs=[
        "batch_dims: int = 0",
        "Tparams: type",
        "Tindices: {int16, int32, int64}",
        "Taxis: {int32, int64}",
    ],
    static_inputs=("axis",),
)
gather_v1_op = register_op(
    "Gather",
    inputs="params: Tparams, indices: Tindices",
    outputs="output: Tparams",
    attrs=["validate_indices: bool = true", "Tparams: type", "Tindices: {int32, int64}"],
)


def _batch_count(batch_dims: int, indices_rank: int) -> int:
    if not -indices_rank <= batch_dims <= indices_rank:
        raise ValueError(
            f"batch_dims {batch_dims} is not in [{-indices_rank}, {indices_rank}] for indices of "
            f"rank {indices_rank}"
        )
    return batch_dims + indices_rank if batch_dims < 0 else batch_dims


@gather_op.shape
def _(params, indices, axis, *, batch_dims):
    p, i = params.dims, indices.dims
    at = constant_value(axis)
    if p is None or i is None:
        return None
    if not p:
        raise ValueError("params must be at least a vector, not a scalar")
    batch = _batch_count(batch_dims, len(i))
    if at is None:
        return (None,) * (len(p) - 1 + len(i) - batch)
    place = resolve_axis(at, len(p))
    if batch > place:
        raise ValueError(f"batch_dims ({batch}) must be at most axis ({place})")
    leading = merge_dims(p[:batch], i[:batch])
    assert leading is not None
    return (*leading, *p[batch:place], *i[batch:], *p[place + 1 :])


def _taken(params: Any, indices: Any, axis: int) -> Any:
    if params.dtype == object and params.ndim == 1 and np.ndim(indices) == 0:
        return params[int(indices), ...]  # a single element of it would come out bare
    return params.take(indices, axis)


@gather_op.kernel
def _(xp, params, indices, axis, *, batch_dims, check):
    place = at_run_time(resolve_axis, axis, params.ndim)
    batch = at_run_time(_batch_count, batch_dims, indices.ndim)
    in_range(xp, indices, params.shape[place], check)
    if batch == 0:
        if xp is np:
            return _taken(params, indices, place)
        return xp.take(params, indices, axis=place, mode="clip")
    # Coordinates of the batch, broadcast against the indices; the axis right after them.
    rows = [
        xp.arange(n).reshape([-1 if d == b else 1 for d in range(indices.ndim)])
        for b, n in enumerate(params.shape[:batch])
    ]
    picked = xp.moveaxis(params, place, batch)[(*rows, indices)]
    count = indices.ndim - batch
    after = place  # where the dimensions between batch and axis end, without the batch's
    return xp.moveaxis(picked, range(batch, batch + count), range(after, after + count))


@gather_op.gradient
def _(op, grad):
    params, indices, axis = op.inputs
    at = constant_value(axis)
    ranks_known = params.dims is not None and indices.dims is not None
    if at is not None and ranks_known:
        place: Any = resolve_axis(at, len(params.dims))
        batch: Any = _batch_count(op.attrs["batch_dims"], len(indices.dims))
    else:
        place = _counted_from_start(axis if at is None else int(at), params)
        batch = _counted_from_start(op.attrs["batch_dims"], indices)
    if isinstance(place, int) and place == 0:
        return [slices_of_gather(_shape_beside(params), indices, grad), None, None]
    return [_dense_gradient(params, indices, convert_to_tensor(grad), place, batch), None, None]


def _counted_from_start(axis: Any, tensor: Tensor) -> Any:
    """``axis`` of a tensor whose rank is not known; one that is negative counts from the end."""
    if isinstance(axis, int) and axis >= 0:
        return axis
    if isinstance(axis, Tensor):
        axis = get_op_def("Cast")(axis, DstT=dtypes.int32)
    return get_op_def("FloorMod")(axis, get_op_def("Rank")(tensor))


def _dense_gradient(params: Tensor, indices: Tensor, grad: Tensor, axis: Any, batch: Any) -> Tensor:
    """The gradient of a gather along an inner axis: rows added up where they came from.

    All dimensions before the batch's end, before the axis and behind it count as one each, so
    that ranks need not be known.
    """
    own, picked = shape_of(params), shape_of(indices)
    count = own[axis]
    batches, before = _product(own[:batch]), _product(own[batch:axis])
    behind, each = _product(own[axis + 1 :]), _product(picked[batch:])
    rows = transpose(reshape(grad, stack([batches, before, each, behind])), [0, 2, 1, 3])
    # One segment for each row of each batch.
    starts = get_op_def("Range")(0, batches, 1) * count
    starts = get_op_def("Cast")(starts, DstT=indices.dtype.base_dtype)
    ids = reshape(indices, stack([batches, each])) + starts[:, None]
    summed = unsorted_segment_sum(rows, ids, batches * count)
    summed = transpose(reshape(summed, stack([batches, count, before, behind])), [0, 2, 1, 3])
    return reshape(summed, own)


def _product(dims: Tensor) -> Tensor:
    return get_op_def("Prod")(dims, 0)


@gather_v1_op.shape
def _(params, indices):
    if params.dims is None or indices.dims is None:
        return None
    if not params.dims:
        raise ValueError("params must be at least a vector, not a scalar")
    return indices.dims + params.dims[1:]


@gather_v1_op.kernel
def _(xp, params, indices, *, check):
    in_range(xp, indices, params.shape[0], check)
    return _taken(params, indices, 0) if xp is np else xp.take(params, indices, axis=0, mode="clip")


@gather_v1_op.gradient
def _(op, grad):
    params, indices = op.inputs
    return [slices_of_gather(_shape_beside(params), indices, grad), None]


def _shape_beside(params: Tensor) -> Tensor:
    """The shape of ``params``, computed where they are: they may be large."""
    with colocate_with(params.op):
        return shape_of(params)


def slices_of_gather(dense_shape: Tensor, indices: Tensor, grad: Any) -> IndexedSlices:
    """The gradient of gathering rows of a tensor of shape ``dense_shape``: those rows only."""
    values = convert_to_tensor(grad)
    if indices.dims is not None and len(indices.dims) == 1:
        return IndexedSlices(values, indices, dense_shape)
    count = size(indices)
    row = dense_shape[1:]
    if row.dtype.base_dtype is not count.dtype:
        count = get_op_def("Cast")(count, DstT=row.dtype.base_dtype)
    values = reshape(values, concat([stack([count]), row], 0))
    return IndexedSlices(values, reshape(indices, [-1]), dense_shape)


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """The slices of ``params`` along ``axis`` that ``indices`` names, in its shape.

    The first ``batch_dims`` dimensions of both go together. An index out of range is an error.

    Example:
        >>> tf.gather([10, 20, 30], [2, 0])  # [30, 10]
    """
    del validate_indices  # they are always validated
    if axis is None:
        axis = batch_dims
    read_rows = getattr(params, "sparse_read", None)
    if read_rows is not None and batch_dims == 0 and isinstance(axis, int) and axis == 0:
        return read_rows(indices, name=name)
    return gather_op(params, indices, axis, batch_dims=batch_dims, name=name)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """``tf.gather`` along the last dimension of ``indices``, the ones before it being batches."""
    index = convert_to_tensor(indices, name="indices")
    if index.dims is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    return gather(params, index, name=name, batch_dims=len(index.dims) - 1)


# By coordinates -------------------------------------------------------------------------------

gather_nd_op = register_op(
    "GatherNd",
    inputs="params: Tparams, indices: Tindices",
    outputs="output: Tparams",
    attrs=[
        "Tparams: type",
        "Tindices: {int16, int32, int64}",
        "bad_indices_policy: string = ''",
    ],
)


@gather_nd_op.shape
def _(params, indices):
    p, i = params.dims, indices.dims
    if i is not None and not i:
        raise ValueError("indices must be at least a vector of coordinates, not a scalar")
    if p is None or i is None or i[-1] is None:
        return None
    if i[-1] > len(p):
        raise ValueError(
            f"indices.shape[-1] must be at most the rank of params, but they are {i[-1]} and "
            f"{len(p)}"
        )
    return (*i[:-1], *p[i[-1] :])


def require_coordinates(xp: Any, indices: Any, dims: tuple[int, ...], check: Any) -> None:
    """Checks that each row of ``indices`` is a place in a tensor of shape ``dims``."""
    limits = np.array(dims[: indices.shape[-1]], np.int64)

    def explain() -> str:
        rows = indices.reshape(-1, indices.shape[-1])
        bad = int(np.argwhere(((rows < 0) | (rows >= limits)).any(axis=1))[0, 0])
        at = np.unravel_index(bad, indices.shape[:-1]) if indices.ndim > 1 else ()
        where = f"[{','.join(map(str, at))}]" if at else ""
        return (
            f"indices{where} = {rows[bad].tolist()} does not index into a tensor of shape "
            f"{format_dims(dims)}"
        )

    check(xp.all((indices >= 0) & (indices < limits)), explain)


@gather_nd_op.kernel
def _(xp, params, indices, *, check):
    depth = indices.shape[-1]
    if depth == 0:
        return xp.broadcast_to(params, indices.shape[:-1] + params.shape)
    require_coordinates(xp, indices, params.shape, check)
    picked = xp.asarray(params)[tuple(indices[..., d] for d in range(depth))]
    # A single element of an array of objects would come out bare.
    return picked if np.ndim(picked) or xp is not np else params[(*indices.tolist(), ...)]


@gather_nd_op.gradient
def _(op, grad):
    params, indices = op.inputs
    kind = indices.dtype.base_dtype
    if indices.dims is not None and len(indices.dims) == 2 and indices.dims[1] == 1:
        rows = reshape(indices, [-1])
        return [IndexedSlices(convert_to_tensor(grad), rows, shape_of(params, out_type=kind)), None]
    return [get_op_def("ScatterNd")(indices, grad, shape_of(params, out_type=kind)), None]


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """The elements or slices of ``params`` at the coordinates in the last dimension of ``indices``.

    Example:
        >>> tf.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])  # [2, 3]
    """
    if batch_dims:
        return _batch_gather_nd(convert_to_tensor(params), convert_to_tensor(indices), batch_dims)
    return gather_nd_op(params, indices, name=name)


def _batch_gather_nd(params: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    """Coordinates of the batch are put before those given."""
    dims: Dims = indices.dims
    if dims is None or batch_dims >= len(dims):
        raise ValueError("batch_dims must be smaller than the rank of indices, which must be known")
    leading = shape_of(indices)[:-1]
    whole = get_op_def("BroadcastTo")
    kind = indices.dtype.base_dtype
    columns = []
    for d in range(batch_dims):
        line = get_op_def("Range")(0, shape_of(params)[d], 1)
        line = reshape(line, [-1 if i == d else 1 for i in range(len(dims) - 1)])
        column = whole(line, leading)
        if kind is not column.dtype:
            column = get_op_def("Cast")(column, DstT=kind)
        columns.append(column[..., None])
    return gather_nd_op(params, concat([*columns, indices], -1))
