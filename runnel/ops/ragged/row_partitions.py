"""Ways to say which values belong to which row: splits, row numbers, lengths."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape
from runnel.ops.casting import cast
from runnel.ops.cumulative import cumsum
from runnel.ops.joining import concat
from runnel.ops.ranges import range as sequence
from runnel.ops.searching import lower_bound_op, upper_bound_op


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The number of the row of each value.

    Example:
        >>> tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5])  # [0, 0, 0, 2, 2]
    """
    with name_scope(name, "RaggedSplitsToSegmentIds", [splits]):
        splits = as_splits(splits)
        kind = splits.dtype.base_dtype
        places = sequence(splits[-1], dtype=kind)
        found: Any = upper_bound_op(
            reshape(splits, [1, -1]), reshape(places, [1, -1]), out_type=kind
        )
        rows = reshape(found - 1, [-1])
        return rows if out_type is None else cast(rows, as_dtype(out_type))


def segment_ids_to_row_splits(
    segment_ids: Any,
    num_segments: Any = None,
    out_type: Any = None,
    name: str | None = None,
) -> Tensor:
    """Where the rows of values begin whose row numbers are ``segment_ids``, in order.

    Example:
        >>> tf.ragged.segment_ids_to_row_splits([0, 0, 0, 2, 2])  # [0, 3, 3, 5]
    """
    with name_scope(name, "SegmentIdsToRaggedSplits", [segment_ids]):
        ids = convert_to_tensor(segment_ids, name="segment_ids", dtype_hint=dtypes.int64)
        kind = as_dtype(out_type) if out_type is not None else ids.dtype.base_dtype
        ids = cast(ids, kind)
        if num_segments is None:
            # One more than the last; of no values there are no rows.
            count = concat([[-1], ids], 0)[-1] + 1
        else:
            count = cast(convert_to_tensor(num_segments, name="num_segments"), kind)
        rows = sequence(count + 1, dtype=kind)
        found = lower_bound_op(reshape(ids, [1, -1]), reshape(rows, [1, -1]), out_type=kind)
        return reshape(found, [-1])


def lengths_to_splits(lengths: Any) -> Tensor:
    """Where rows of these lengths begin, and where the last ends."""
    lengths = as_splits(lengths)
    return concat([cast([0], lengths.dtype), cumsum(lengths)], 0)


def as_splits(value: Any, dtype: Any = None) -> Tensor:
    """``value`` as int64, unless it is a tensor of int32 (or ``dtype`` is given)."""
    tensor = convert_to_tensor(value, dtype_hint=dtypes.int64)
    if dtype is not None:
        return cast(tensor, as_dtype(dtype))
    if tensor.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"Row partitions must be int32 or int64, not {tensor.dtype.name}")
    return tensor
