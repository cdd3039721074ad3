"""Reducing runs of chosen rows of a tensor: a gather and a segment reduction in one."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.combined_rows import combined_natively
from runnel.ops.gather import gather
from runnel.ops.segments import REALS, reduce_runs, unsorted_segment_sum

_FLOATS = "{bfloat16, half, float, double}"
_IDS = "Tsegmentids: {int32, int64} = DT_INT32"
_INDEX = "Tidx: {int32, int64} = DT_INT32"
_SPARSE = "sparse_gradient: bool = false"


def _sizes(ids: np.ndarray, count: int, dtype: np.dtype, root: bool) -> np.ndarray:
    """How many rows each segment has (or the root of it), at least one."""
    sizes = np.maximum(np.bincount(ids, minlength=count), 1).astype(np.float64)
    return (np.sqrt(sizes) if root else sizes).astype(dtype)


def _checked(indices: Any, ids: Any, rows: int, count: int | None, check: Any) -> None:
    check(
        indices.shape == ids.shape and indices.ndim == 1,
        lambda: (
            f"indices {format_dims(indices.shape)} and segment_ids {format_dims(ids.shape)} must "
            "be vectors of the same length"
        ),
    )
    ascending = ids.size == 0 or (ids[0] >= 0 and (ids[1:] >= ids[:-1]).all())
    check(ascending, lambda: f"segment ids are not increasing from 0: {ids.tolist()}")
    if count is not None:
        check(
            not ids.size or ids[-1] < count,
            lambda: f"segment ids must be < num_segments ({count}): {ids.tolist()}",
        )
    inside = not indices.size or ((indices >= 0) & (indices < rows)).all()
    check(inside, lambda: f"An index of {indices.tolist()} is out of range [0, {rows})")


def _shaped(vector: np.ndarray, rank: int) -> np.ndarray:
    return vector.reshape((-1, *(1,) * (rank - 1)))


def _reduced(name: str, data: Any, indices: Any, ids: Any, count: int) -> np.ndarray:
    out = np.zeros((count, *data.shape[1:]), data.dtype)
    if not combined_natively(np.add, out, ids, data, sources=indices, anew=True):
        reduce_runs(np.add, out, ids, data[indices])
    if name == "Sum":
        return out
    return (out / _shaped(_sizes(ids, count, data.dtype, name == "SqrtN"), data.ndim)).astype(
        data.dtype
    )


def _row_dims(data: Tensor, count: int | None) -> Dims:
    return None if data.dims is None else (count, *data.dims[1:])


def _family(name: str) -> tuple[OpDef, OpDef, OpDef]:
    """The operation, the one with a given number of segments, and their gradient."""
    types = f"T: {REALS if name == 'Sum' else _FLOATS}"
    plain = register_op(
        f"SparseSegment{name}",
        inputs="data: T, indices: Tidx, segment_ids: Tsegmentids",
        outputs="output: T",
        attrs=[types, _INDEX, _IDS, _SPARSE],
        host=True,  # the number of segments is data
    )
    counted = register_op(
        f"SparseSegment{name}WithNumSegments",
        inputs="data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments",
        outputs="output: T",
        attrs=[types, _INDEX, "Tnumsegments: {int32, int64} = DT_INT32", _IDS, _SPARSE],
        host=True,
    )
    grad_op = register_op(
        f"SparseSegment{name}Grad",
        inputs="grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32",
        outputs="output: T",
        attrs=[f"T: {_FLOATS}", _INDEX, _IDS],
        host=True,
        differentiable=False,
    )

    @plain.shape
    def _(data, indices, ids):
        return _row_dims(data, None)

    @plain.kernel
    def _(xp, data, indices, ids, *, check):
        _checked(indices, ids, data.shape[0], None, check)
        return _reduced(name, data, indices, ids, int(ids[-1]) + 1 if ids.size else 0)

    @counted.shape
    def _(data, indices, ids, count):
        known = constant_value(count)
        return _row_dims(data, None if known is None else int(known))

    @counted.kernel
    def _(xp, data, indices, ids, count, *, check):
        total = int(np.asarray(count).reshape(-1)[0])
        _checked(indices, ids, data.shape[0], total, check)
        return _reduced(name, data, indices, ids, total)

    @grad_op.shape
    def _(grad, indices, ids, rows):
        known = constant_value(rows)
        return _row_dims(grad, None if known is None else int(known))

    @grad_op.kernel
    def _(xp, grad, indices, ids, rows, *, check):
        total = int(rows)
        _checked(indices, ids, total, grad.shape[0], check)
        share = grad
        if name != "Sum":
            sizes = _sizes(ids, grad.shape[0], grad.dtype, name == "SqrtN")
            share = (grad / _shaped(sizes, grad.ndim)).astype(grad.dtype)
        out = np.zeros((total, *grad.shape[1:]), grad.dtype)
        if not combined_natively(np.add, out, indices, share, sources=ids, anew=True):
            reduce_runs(np.add, out, indices, share[ids])
        return out

    for op_def in (plain, counted):

        @op_def.gradient
        def _(op, grad):
            rows = shape_of(op.inputs[0])[0]
            if name == "Sum":  # TensorFlow 1.15 has no operation for it
                back = unsorted_segment_sum(gather(grad, op.inputs[2]), op.inputs[1], rows)
            else:
                back = grad_op(grad, op.inputs[1], op.inputs[2], rows)
            return [back, *[None] * (len(op.inputs) - 1)]

    return plain, counted, grad_op


_SUM = _family("Sum")
_MEAN = _family("Mean")
_SQRT_N = _family("SqrtN")


def _called(
    family: tuple[OpDef, OpDef, OpDef],
    data: Any,
    indices: Any,
    segment_ids: Any,
    num_segments: Any,
    name: str | None,
) -> Tensor:
    if num_segments is None:
        return family[0](data, indices, segment_ids, name=name)
    return family[1](data, indices, segment_ids, num_segments, name=name)


def sparse_segment_sum(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Sums of the rows ``data[indices]`` with the same id; ids are sorted.

    Example:
        >>> tf.sparse.segment_sum([[1], [2], [3]], [0, 2], [0, 0])  # [[4]]
    """
    return _called(_SUM, data, indices, segment_ids, num_segments, name)


def sparse_segment_mean(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Means of the rows ``data[indices]`` with the same id; ids are sorted."""
    return _called(_MEAN, data, indices, segment_ids, num_segments, name)


def sparse_segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Sums of the rows ``data[indices]`` with the same id over the root of their number."""
    return _called(_SQRT_N, data, indices, segment_ids, num_segments, name)
