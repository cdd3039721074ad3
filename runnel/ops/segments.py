"""Reducing the slices of a tensor that belong to the same segment, in whatever order they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shapes import Dims, compatible_dims, format_dims
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.combined_rows import combined_natively
from runnel.ops.fill import ones_like, zeros_like
from runnel.ops.joining import concat
from runnel.ops.stable_order import stable_order

NUMBERS = (
    "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
    "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}"
)
REALS = "realnumbertype"


class SegmentReduction(NamedTuple):
    """How the elements of one segment combine, and the value of an empty one."""

    name: str
    ufunc: np.ufunc
    scatter: str
    """The method of JAX's ``x.at[i]`` that combines."""
    types: str
    empty: Callable[[np.dtype], Any]


def _lowest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else ml_dtypes.finfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else ml_dtypes.finfo(dtype).max


SUM = SegmentReduction("Sum", np.add, "add", NUMBERS, lambda dtype: 0)
PROD = SegmentReduction("Prod", np.multiply, "multiply", NUMBERS, lambda dtype: 1)
MAX = SegmentReduction("Max", np.maximum, "max", REALS, _lowest)
MIN = SegmentReduction("Min", np.minimum, "min", REALS, _highest)


def reduce_runs(ufunc: np.ufunc, out: np.ndarray, ids: np.ndarray, data: np.ndarray) -> None:
    """``out[i]`` becomes the reduction of ``data[ids == i]``, where there are any."""
    if ids.size == 0 or data.size == 0 or combined_natively(ufunc, out, ids, data, anew=True):
        return
    if not (ids[1:] >= ids[:-1]).all():
        # Sorting and reducing runs is many times faster than ufunc.at over rows.
        order = stable_order(ids)
        ids, data = ids[order], data[order]
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    lengths = np.diff(starts, append=ids.size)
    several = lengths > 1
    if 4 * np.count_nonzero(several) < starts.size:
        # A run of one row is that row; reducing it takes several times as long as copying it.
        alone = starts[~several]
        out[ids[alone]] = data[alone]
        left = np.repeat(several, lengths)
        ids, data, lengths = ids[left], data[left], lengths[several]
        starts = np.cumsum(lengths) - lengths
    if starts.size:
        out[ids[starts]] = ufunc.reduceat(data, starts, axis=0, dtype=data.dtype)


# Segments in any order, a known number of them ------------------------------------------------


def _unsorted_dims(data: Tensor, segment_ids: Tensor, num_segments: Tensor) -> Dims:
    a, b = data.dims, segment_ids.dims
    if a is None or b is None:
        return None
    if len(b) > len(a) or not compatible_dims(a[: len(b)], b):
        raise ValueError(
            f"The shape of segment_ids {format_dims(b)} must be a prefix of that of data "
            f"{format_dims(a)}"
        )
    count = constant_value(num_segments)
    if count is not None and int(count) < 0:
        raise ValueError(f"num_segments must not be negative, but is {int(count)}")
    return (None if count is None else int(count), *a[len(b) :])


def _unsorted(reduction: SegmentReduction) -> OpDef:
    op_def = register_op(
        f"UnsortedSegment{reduction.name}",
        inputs="data: T, segment_ids: Tindices, num_segments: Tnumsegments",
        outputs="output: T",
        attrs=[
            f"T: {reduction.types}",
            "Tindices: {int16, int32, int64}" if reduction is SUM else "Tindices: {int32, int64}",
            "Tnumsegments: {int32, int64} = DT_INT32",
        ],
        static_inputs=("num_segments",),
    )
    op_def.shape(_unsorted_dims)

    @op_def.kernel
    def _(xp, data, segment_ids, num_segments, *, check):
        count = int(num_segments)
        rank = segment_ids.ndim
        check(
            data.shape[:rank] == segment_ids.shape,
            lambda: (
                f"The shape of segment_ids {format_dims(segment_ids.shape)} must be a prefix of "
                f"that of data {format_dims(data.shape)}"
            ),
        )
        in_bounds = segment_ids.size == 0 or xp.max(segment_ids) < count

        def explain() -> str:
            at = np.argwhere(segment_ids >= count)[0]
            return (
                f"segment_ids[{','.join(map(str, at))}] = {segment_ids[tuple(at)]} is out of "
                f"range [0, {count})"
            )

        check(in_bounds, explain)
        ids = segment_ids.reshape(-1)
        rows = data.reshape((ids.shape[0], *data.shape[rank:]))
        empty = reduction.empty(np.dtype(data.dtype))
        if xp is np:
            out = np.full((count, *rows.shape[1:]), empty, data.dtype)
            if combined_natively(reduction.ufunc, out, ids, rows):
                return out
            kept = ids >= 0  # slices with a negative id belong to no segment
            if not kept.all():
                ids, rows = ids[kept], rows[kept]
            reduce_runs(reduction.ufunc, out, ids, rows)
            # An extremum starts from the empty segment's: of infinities alone it is finite.
            return reduction.ufunc(out, np.array(empty, out.dtype), out=out)
        out = xp.full((count, *rows.shape[1:]), empty, data.dtype)
        target = xp.where(ids < 0, xp.asarray(count, ids.dtype), ids)
        return getattr(out.at[target], reduction.scatter)(rows, mode="drop")

    return op_def


unsorted_segment_sum_op = _unsorted(SUM)
unsorted_segment_prod_op = _unsorted(PROD)
unsorted_segment_max_op = _unsorted(MAX)
unsorted_segment_min_op = _unsorted(MIN)


def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """``output[i]`` is the sum of ``data[j]`` for all ``j`` with ``segment_ids[j] == i``.

    Slices with a negative id are dropped.

    Example:
        >>> tf.math.unsorted_segment_sum([1, 2, 3], [0, 1, 0], 2)  # [4, 2]
    """
    return unsorted_segment_sum_op(data, segment_ids, num_segments, name=name)


def _segment_counts(data: Tensor, segment_ids: Any, num_segments: Any) -> Tensor:
    """How many slices each segment has, at least 1, in the shape of the sums."""
    ids = convert_to_tensor(segment_ids, name="segment_ids")
    ones = get_op_def("OnesLike")(get_op_def("Cast")(ids, DstT=data.dtype.base_dtype))
    counts = unsorted_segment_sum_op(ones, ids, num_segments)
    counts = get_op_def("Maximum")(counts, get_op_def("OnesLike")(counts))
    if data.dims is None or ids.dims is None:
        raise ValueError("The ranks of data and segment_ids must be known")
    for _ in range(len(data.dims) - len(ids.dims)):
        counts = get_op_def("ExpandDims")(counts, -1)
    return counts


def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The means of the slices of each segment; zeros for an empty one."""
    with name_scope(name, "UnsortedSegmentMean", [data, segment_ids, num_segments]):
        data = convert_to_tensor(data)
        total: Any = unsorted_segment_sum(data, segment_ids, num_segments)
        return total / _segment_counts(data, segment_ids, num_segments)


def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The sums of each segment divided by the root of how many there are."""
    with name_scope(name, "UnsortedSegmentSqrtN", [data, segment_ids, num_segments]):
        data = convert_to_tensor(data)
        total: Any = unsorted_segment_sum(data, segment_ids, num_segments)
        return total / get_op_def("Sqrt")(_segment_counts(data, segment_ids, num_segments))


def unsorted_segment_prod(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """``output[i]`` is the product of ``data[j]`` for all ``j`` with ``segment_ids[j] == i``."""
    return unsorted_segment_prod_op(data, segment_ids, num_segments, name=name)


def unsorted_segment_max(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """``output[i]`` is the maximum of ``data[j]`` for all ``j`` with ``segment_ids[j] == i``."""
    return unsorted_segment_max_op(data, segment_ids, num_segments, name=name)


def unsorted_segment_min(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """``output[i]`` is the minimum of ``data[j]`` for all ``j`` with ``segment_ids[j] == i``."""
    return unsorted_segment_min_op(data, segment_ids, num_segments, name=name)


# Gradients: each slice gets that of its segment -----------------------------------------------


def like_rows(ids: Tensor, rows: Tensor) -> Tensor:
    """A condition on ``ids`` with dimensions of size 1 for the rest of ``rows``."""
    if ids.dims is not None and rows.dims is not None:
        extra: Any = [1] * (len(rows.dims) - len(ids.dims))
        if not extra:
            return ids
    else:
        rank = get_op_def("Rank")
        extra = get_op_def("Fill")(reshape(rank(rows) - rank(ids), [1]), 1)
    return reshape(ids, concat([shape_of(ids), extra], 0))


def spread(values: Tensor, ids: Tensor, unsorted: bool) -> Tensor:
    """For each slice the row of its segment; zeros for slices of no segment."""
    from runnel.ops.gather import gather  # which needs sums of segments itself

    if not unsorted:
        return gather(values, ids)
    zero = get_op_def("ZerosLike")(ids)
    rows = gather(values, get_op_def("Maximum")(ids, zero))
    kept = like_rows(get_op_def("GreaterEqual")(ids, zero), rows)
    return get_op_def("SelectV2")(kept, rows, zeros_like(rows))


@unsorted_segment_sum_op.gradient
def _(op, grad):
    return [spread(grad, op.inputs[1], True), None, None]


def extreme_gradient(op: Operation, grad: Tensor, total: OpDef) -> list[Any]:
    """Shared equally by the slices that attain the maximum or minimum."""
    data, ids = op.inputs[:2]
    unsorted = len(op.inputs) == 3
    chosen = get_op_def("Equal")(data, spread(op.outputs[0], ids, unsorted))
    ones_there = get_op_def("Cast")(chosen, DstT=grad.dtype.base_dtype)
    count = total(ones_there, ids, *op.inputs[2:])
    share = spread(grad / count, ids, unsorted)
    return [
        get_op_def("SelectV2")(chosen, share, zeros_like(share)),
        *[None] * (len(op.inputs) - 1),
    ]


def product_gradient(op: Operation, grad: Tensor, total: OpDef, product: OpDef) -> list[Any]:
    """The product of the others, without dividing by a zero."""
    data, ids = op.inputs[:2]
    unsorted = len(op.inputs) == 3
    rest = op.inputs[2:]
    select = get_op_def("SelectV2")
    is_zero = get_op_def("Equal")(data, get_op_def("ZerosLike")(data))
    zero_ones = get_op_def("Cast")(is_zero, DstT=dtypes.int32)
    zeros = total(zero_ones, ids, *rest)
    # With two zeros in a segment, the product of the others is always zero.
    grad = select(get_op_def("Greater")(zeros, 1), zeros_like(grad), grad)
    nonzero = select(is_zero, ones_like(data), data)
    without_zeros = spread(product(nonzero, ids, *rest), ids, unsorted)
    others = select(is_zero, without_zeros, spread(op.outputs[0], ids, unsorted) / nonzero)
    return [spread(grad, ids, unsorted) * others, *[None] * (len(op.inputs) - 1)]


for _op in (unsorted_segment_max_op, unsorted_segment_min_op):

    @_op.gradient
    def _(op, grad):
        return extreme_gradient(op, grad, unsorted_segment_sum_op)


@unsorted_segment_prod_op.gradient
def _(op, grad):
    return product_gradient(op, grad, unsorted_segment_sum_op, unsorted_segment_prod_op)
