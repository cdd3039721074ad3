"""Choosing and joining rows of ragged tensors."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.gather import gather
from runnel.ops.joining import concat, stack
from runnel.ops.masking import boolean_mask as dense_boolean_mask
from runnel.ops.ragged.ragged_ops import ragged_gather_op, ragged_range_op
from runnel.ops.ragged.ragged_tensor import RaggedTensor, ragged_or_tensor
from runnel.ops.ragged.row_partitions import as_splits
from runnel.ops.ranges import range as sequence
from runnel.ops.segments import unsorted_segment_sum
from runnel.ops.selection import where
from runnel.ops.sorting import argsort
from runnel.ops.transposition import transpose


def ragged_range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """Rows of numbers, each from a start to before a limit.

    Example:
        >>> tf.ragged.range([0, 5], [3, 7])  # [[0, 1, 2], [5, 6]]
    """
    if limits is None:
        starts, limits = 0, starts
    with name_scope(name, "RaggedRange", [starts, limits, deltas]) as scope:
        bounds = [convert_to_tensor(value, dtype) for value in (starts, limits, deltas)]
        if dtype is None:
            order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            kind = max((b.dtype.base_dtype for b in bounds), key=order.index)
            bounds = [cast(b, kind) for b in bounds]
        splits, values = ragged_range_op(*bounds, Tsplits=as_dtype(row_splits_dtype), name=scope)
        return RaggedTensor(values, splits)


def ragged_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """The rows of ``params`` that ``indices`` name; either may be ragged."""
    with name_scope(name, "RaggedGather", []) as scope:
        params, indices = ragged_or_tensor(params), ragged_or_tensor(indices)
        if isinstance(indices, RaggedTensor):
            return indices.with_values(ragged_gather(params, indices.values))
        if not isinstance(params, RaggedTensor):
            return gather(params, indices, name=scope)
        rank = None if indices.dims is None else len(indices.dims)
        if rank is None:
            raise ValueError("indices must have a known rank")
        if rank == 0:
            return params[indices]
        made = ragged_gather_op(
            list(params.nested_row_splits),
            params.flat_values,
            indices,
            Tsplits=params.row_splits.dtype.base_dtype,
            OUTPUT_RAGGED_RANK=rank + params.ragged_rank - 1,
            name=scope,
        )
        flat_splits, values = made
        return RaggedTensor.from_nested_row_splits(values, flat_splits, validate=False)


def ragged_concat(values: Any, axis: int, name: str | None = None) -> Any:
    """Ragged tensors one after the other, or row by row (``axis`` 1)."""
    with name_scope(name, "RaggedConcat", []):
        parts = [_as_ragged(value) for value in values]
        if len(parts) == 1:
            return parts[0]
        rank = parts[0].shape.rank
        axis = axis if axis >= 0 or rank is None else axis + rank
        if axis == 0:
            return _one_after_the_other(parts)
        if axis == 1:
            rows = parts[0].nrows()
            count = len(parts)
            both = _one_after_the_other(parts)
            numbers = reshape(sequence(rows * count), stack([cast(count, rows.dtype), rows]))
            mixed = ragged_gather(both, reshape(transpose(numbers), [-1]))
            return RaggedTensor(mixed.values, mixed.row_splits[::count])
        inner = ragged_concat([part.values for part in parts], axis - 1)
        return parts[0].with_values(inner)


def _as_ragged(value: Any) -> RaggedTensor:
    value = ragged_or_tensor(value)
    return value if isinstance(value, RaggedTensor) else RaggedTensor.from_tensor(value)


def _one_after_the_other(parts: list[RaggedTensor]) -> RaggedTensor:
    values = [part.values for part in parts]
    nested = any(isinstance(value, RaggedTensor) for value in values)
    joined = ragged_concat(values, 0) if nested else concat(values, 0)
    splits = [parts[0].row_splits]
    end: Any = parts[0].row_splits[-1]
    for part in parts[1:]:
        splits.append(part.row_splits[1:] + end)
        end = end + part.row_splits[-1]
    return RaggedTensor(joined, concat(splits, 0))


def ragged_stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Tensors of any lengths as the rows of a ragged one (``axis`` 0), or beside each other.

    Example:
        >>> tf.ragged.stack([[1, 2], [3]])  # [[1, 2], [3]]
    """
    with name_scope(name, "RaggedConcat", []):
        parts = [ragged_or_tensor(value) for value in values]
        ranks = {part.shape.rank for part in parts}
        rank = ranks.pop() if len(ranks) == 1 else None
        if rank is None:
            raise ValueError("ragged.stack needs values of one known rank")
        axis = axis if axis >= 0 else axis + rank + 1
        if rank == 0:
            return stack(parts)
        ragged = [_as_ragged(part) if rank > 1 else part for part in parts]
        if axis == 0:
            joined = ragged_concat(ragged, 0) if rank > 1 else concat(ragged, 0)
            lengths = stack([_count(part) for part in ragged])
            return RaggedTensor.from_row_lengths(joined, lengths, validate=False)
        wrapped = [part[(slice(None),) * axis + (None,)] for part in ragged]
        return ragged_concat(wrapped, axis)


def _count(part: Any) -> Tensor:
    if isinstance(part, RaggedTensor):
        return part.nrows(dtypes.int64)
    return shape_of(part, out_type=dtypes.int64)[0]


def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> RaggedTensor:
    """The rows of ``data`` sorted into ``num_partitions`` rows of a ragged tensor.

    Example:
        >>> tf.ragged.stack_dynamic_partitions(["a", "b", "c"], [1, 0, 1], 3)
        # [["b"], ["a", "c"], []]
    """
    with name_scope(name, "SegmentStack", [partitions]):
        data = ragged_or_tensor(data)
        parts = ragged_or_tensor(partitions)
        if isinstance(parts, RaggedTensor):
            if not isinstance(data, RaggedTensor):
                raise ValueError("partitions must have the rows of data")
            return stack_dynamic_partitions(data.values, parts.values, num_partitions)
        rank = None if parts.dims is None else len(parts.dims)
        if rank is None or rank > 1:
            raise ValueError("partitions must be a vector, or ragged as data is")
        order = argsort(parts, stable=True)
        sorted_parts = gather(parts, order)
        return RaggedTensor.from_value_rowids(
            ragged_gather(data, order), cast(sorted_parts, dtypes.int64), num_partitions
        )


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """What ``mask`` says of ``data``, the rows being kept: they have different lengths then.

    Example:
        >>> tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])
        # [[1], [3, 4]]
    """
    with name_scope(name, "RaggedMask", []):
        chosen = ragged_or_tensor(mask, dtypes.bool_)
        data = ragged_or_tensor(data)
        rank = chosen.shape.rank
        if rank is None or rank == 0:
            raise ValueError(f"mask must have a known rank of at least 1, not {chosen.shape}")
        if rank == 1:
            if not isinstance(data, RaggedTensor):
                return dense_boolean_mask(data, chosen)
            rows = reshape(where(chosen), [-1])
            return ragged_gather(data, rows)
        chosen, data = _as_ragged(chosen), _as_ragged(data)
        inner = boolean_mask(data.values, chosen.values)
        if isinstance(chosen.values, RaggedTensor) or len(chosen.values.shape) > 1:
            return RaggedTensor(inner, data.row_splits)
        kept = unsorted_segment_sum(
            cast(chosen.values, data.row_splits.dtype),
            chosen.value_rowids(),
            cast(chosen.nrows(), dtypes.int32),
        )
        return RaggedTensor.from_row_lengths(inner, kept, validate=False)


def tile_rows(ragged: RaggedTensor, times: Any) -> RaggedTensor:
    """All rows, ``times`` over."""
    rows = ragged.nrows()
    numbers = reshape(sequence(rows * as_splits(times, rows.dtype)), [-1])
    return ragged_gather(ragged, numbers % rows)
