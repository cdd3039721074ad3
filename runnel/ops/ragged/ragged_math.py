"""Arithmetic on ragged tensors: element by element, and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.assertions import assert_equal
from runnel.ops.casting import cast
from runnel.ops.control import with_dependencies
from runnel.ops.division import divide
from runnel.ops.fill import ones_like
from runnel.ops.gather import gather
from runnel.ops.ragged.ragged_rows import ragged_range
from runnel.ops.ragged.ragged_tensor import RaggedTensor, ragged_or_tensor
from runnel.ops.reduce_functions import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from runnel.ops.segments import (
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sum,
)


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``op`` of the innermost values of ragged tensors that have the same rows.

    Example:
        >>> tf.ragged.map_flat_values(tf.square, tf.ragged.constant([[1, 2], [3]]))
    """
    found: list[RaggedTensor] = []
    taken = [_flat(value, found) for value in args]
    named = {key: _flat(value, found) for key, value in kwargs.items()}
    if not found:
        return op(*args, **kwargs)
    first = found[0]
    checks = []
    for other in found[1:]:
        if other.ragged_rank != first.ragged_rank:
            raise ValueError("Inputs must have the same ragged_rank.")
        pairs = zip(first.nested_row_splits, other.nested_row_splits, strict=True)
        checks += [
            assert_equal(a, cast(b, a.dtype), message="Inputs must have identical ragged splits")
            for a, b in pairs
            if a is not b
        ]
    result = op(*taken, **named)
    if checks:
        result = with_dependencies(checks, result)
    return first.with_flat_values(result)


def _flat(value: Any, found: list[RaggedTensor]) -> Any:
    if isinstance(value, RaggedTensor):
        found.append(value)
        return value.flat_values
    if isinstance(value, list | tuple):
        return type(value)(_flat(item, found) for item in value)
    return value


def elementwise(op: Callable[..., Any], x: Any, y: Any, **named: Any) -> Any:
    """``op`` of two, of which one at least is ragged: the same rows, a scalar, or a column.

    A column, one value for each row, is a tensor of shape [rows, 1].
    """
    ragged = x if isinstance(x, RaggedTensor) else y
    kind = ragged.dtype.base_dtype
    x, y = (v if isinstance(v, RaggedTensor) else ragged_or_tensor(v, kind) for v in (x, y))
    if isinstance(x, RaggedTensor) and isinstance(y, RaggedTensor):
        return map_flat_values(op, x, y, **named)
    dense = y if ragged is x else x
    stretched = _stretched(ragged, dense)
    flat = ragged.flat_values
    result = op(flat, stretched, **named) if ragged is x else op(stretched, flat, **named)
    return ragged.with_flat_values(result)


def _stretched(ragged: RaggedTensor, dense: Tensor) -> Tensor:
    """``dense`` with a value for each innermost value of ``ragged``."""
    dims = dense.dims
    inner = ragged.flat_values.shape.rank
    if dims == () or (dims is not None and inner is not None and len(dims) < inner):
        return dense
    if dims is not None and len(dims) == 1 and dims[0] == 1:
        return dense
    if dims is not None and len(dims) == 2 and dims[1] == 1 and ragged.ragged_rank == 1:
        return gather(reshape(dense, [-1]), ragged.value_rowids())
    raise ValueError(
        f"A tensor of shape {dense.shape} cannot be combined with rows of different lengths, "
        f"{ragged.shape}: give a scalar, a column [rows, 1], or make it ragged with the same rows"
    )


# Reductions -------------------------------------------------------------------------------------


def _reduced(whole: Callable[..., Any], by_segment: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(
        input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
    ) -> Any:
        return _along(whole, by_segment, input_tensor, axis, keepdims, name)

    return reduce


def _along(
    whole: Any, by_segment: Any, ragged: Any, axis: Any, keepdims: bool, name: str | None
) -> Any:
    if not isinstance(ragged, RaggedTensor):
        return whole(ragged, axis=axis, keepdims=keepdims, name=name)
    with name_scope(name, "RaggedReduce"):
        if axis is None:
            if keepdims:
                raise ValueError("keepdims=True needs an axis")
            return whole(ragged.flat_values)
        axes = _axes(axis, ragged)
        if len(axes) > 1:
            for one in sorted(axes, reverse=True):
                ragged = _along(whole, by_segment, ragged, one, keepdims, None)
            return ragged
        (place,) = axes
        if place == 0:
            columns = ragged_range(ragged.row_lengths(), row_splits_dtype=ragged.row_splits.dtype)
            longest = cast(ragged.bounding_shape(1), dtypes.int32)
            result = _segmented(by_segment, ragged.values, columns.values, longest)
            return expand_dims(result, 0) if keepdims else result
        if place == 1:
            rows = cast(ragged.nrows(), dtypes.int32)
            result = _segmented(by_segment, ragged.values, ragged.value_rowids(), rows)
            return expand_dims(result, 1) if keepdims else result
        inner = _along(whole, by_segment, ragged.values, place - 1, keepdims, None)
        return ragged.with_values(inner)


def _axes(axis: Any, ragged: RaggedTensor) -> list[int]:
    known = constant_value(convert_to_tensor(axis))
    if known is None:
        raise ValueError("axis must be known when building: a ragged result depends on it")
    rank = ragged.shape.rank
    axes = known.reshape(-1).tolist()
    if rank is None and min(axes, default=0) < 0:
        raise ValueError("A negative axis needs a known rank")
    return [int(a) if a >= 0 else int(a) + int(rank or 0) for a in axes]


def _segmented(by_segment: Any, values: Any, ids: Tensor, count: Tensor) -> Any:
    if isinstance(values, RaggedTensor):
        raise ValueError(
            "Reducing an outer dimension of several ragged ones is not supported: reduce the "
            "inner ones first"
        )
    return by_segment(values, ids, count)


def _mean(data: Any, ids: Any, count: Any) -> Any:
    total = unsorted_segment_sum(data, ids, count)
    return divide(total, unsorted_segment_sum(ones_like(data), ids, count))


def _all(data: Any, ids: Any, count: Any) -> Any:
    return cast(unsorted_segment_min(cast(data, dtypes.int32), ids, count), dtypes.bool_)


def _any(data: Any, ids: Any, count: Any) -> Any:
    return unsorted_segment_max(cast(data, dtypes.int32), ids, count) > 0


ragged_reductions: dict[str, Callable[..., Any]] = {
    "reduce_sum": _reduced(reduce_sum, unsorted_segment_sum),
    "reduce_prod": _reduced(reduce_prod, unsorted_segment_prod),
    "reduce_min": _reduced(reduce_min, unsorted_segment_min),
    "reduce_max": _reduced(reduce_max, unsorted_segment_max),
    "reduce_mean": _reduced(reduce_mean, _mean),
    "reduce_all": _reduced(reduce_all, _all),
    "reduce_any": _reduced(reduce_any, _any),
}
"""The functions of ``tf`` that reduce, for ragged tensors."""
