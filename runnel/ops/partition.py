"""Routing slices to several places by index, and putting them together again.

With ``tf.gather`` these make a sharded embedding: split the indices by shard, look each up where
its shard lives, stitch the answers together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import Dims, compatible_dims, format_dims, merge_dims
from runnel.ops.array_shape import reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.bounds import in_range
from runnel.ops.fill import zeros_like
from runnel.ops.gather import gather
from runnel.ops.ranges import range as positions
from runnel.ops.row_update import set_rows

dynamic_partition_op = register_op(
    "DynamicPartition",
    inputs="data: T, partitions: int32",
    outputs="outputs: num_partitions * T",
    attrs=["num_partitions: int >= 1", "T: type"],
    host=True,
)


@dynamic_partition_op.shape
def _(data, partitions, *, num_partitions):
    a, b = data.dims, partitions.dims
    if a is None or b is None:
        return [None] * num_partitions
    if len(b) > len(a) or not compatible_dims(a[: len(b)], b):
        raise ValueError(
            f"The shape of partitions {format_dims(b)} must be a prefix of that of data "
            f"{format_dims(a)}"
        )
    return [(None, *a[len(b) :])] * num_partitions


@dynamic_partition_op.kernel
def _(xp, data, partitions, *, num_partitions, check):
    if data.shape[: partitions.ndim] != partitions.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"The shape of partitions {format_dims(partitions.shape)} must be a prefix of that of "
            f"data {format_dims(data.shape)}",
        )
    in_range(xp, partitions, num_partitions, check, "partitions")
    if partitions.ndim == 0:
        data, partitions = data[None], partitions[None]
    rows = data.reshape(partitions.size, *data.shape[partitions.ndim :])
    parts = partitions.reshape(-1)
    # Taking positions is several times as fast as taking what a mask marks.
    return [rows.take(np.flatnonzero(parts == i), 0) for i in range(num_partitions)]


@dynamic_partition_op.gradient
def _(op, *grads):
    data, partitions = op.inputs
    parts = [zeros_like(o) if g is None else g for o, g in zip(op.outputs, grads, strict=True)]
    rows = shape_of(partitions)
    where = reshape(positions(get_op_def("Prod")(rows, [0])), rows)
    places = dynamic_partition_op(where, partitions, num_partitions=len(grads))
    whole = dynamic_stitch(places, parts)
    return [reshape(whole, shape_of(data)), None]


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """``data`` split into ``num_partitions``: slice ``i`` goes to part ``partitions[i]``.

    Example:
        >>> tf.dynamic_partition([10, 20, 30], [0, 1, 0], 2)  # [10, 30], [20]
    """
    return dynamic_partition_op(data, partitions, num_partitions=num_partitions, name=name)


dynamic_stitch_op = register_op(
    "DynamicStitch",
    inputs="indices: N * int32, data: N * T",
    outputs="merged: T",
    attrs=["N: int >= 1", "T: type"],
    host=True,
)
parallel_dynamic_stitch_op = register_op(
    "ParallelDynamicStitch",
    inputs="indices: N * int32, data: N * T",
    outputs="merged: T",
    attrs=["N: int >= 1", "T: type"],
    host=True,
)


def _stitched_dims(indices: list[Tensor], data: list[Tensor]) -> Dims:
    row: Dims = None
    for index, part in zip(indices, data, strict=True):
        if index.dims is None or part.dims is None:
            continue
        count = len(index.dims)
        if not compatible_dims(part.dims[:count], index.dims):
            raise ValueError(
                f"The shape of indices {format_dims(index.dims)} must be a prefix of that of data "
                f"{format_dims(part.dims)}"
            )
        row = merge_dims(row, part.dims[count:])
    if row is None:
        return None
    known = [constant_value(index) for index in indices]
    if any(k is None for k in known):
        return (None, *row)
    return (max((int(k.max()) + 1 for k in known if k is not None and k.size), default=0), *row)


def _stitch(indices: list[Any], data: list[Any]) -> Any:
    row = data[0].shape[indices[0].ndim :]
    for index, part in zip(indices, data, strict=True):
        if part.shape != index.shape + row:
            raise InvalidArgumentError(
                None,
                None,
                f"data of shape {format_dims(part.shape)} does not fit indices of shape "
                f"{format_dims(index.shape)} and slices of shape {format_dims(row)}",
            )
        if index.size and index.min() < 0:
            raise InvalidArgumentError(None, None, f"indices must not be negative: {index.min()}")
    flat = [index.reshape(-1) for index in indices]
    count = max((int(index.max()) + 1 for index in flat if index.size), default=0)
    merged = np.empty((count, *row), data[0].dtype)
    given = np.zeros(count, bool)
    for index in flat:
        given[index] = True
    if not given.all():
        merged[~given] = np.zeros((), merged.dtype)
    for index, part in zip(flat, data, strict=True):
        set_rows(merged, index, part.reshape((index.size, *row)))  # later ones win
    return merged


for _op in (dynamic_stitch_op, parallel_dynamic_stitch_op):
    _op.shape(_stitched_dims)

    @_op.kernel
    def _(xp, indices, data):
        return _stitch(indices, data)

    @_op.gradient
    def _(op, grad):
        count = op.attrs["N"]
        return [None] * count + [gather(grad, index) for index in op.inputs[:count]]


def dynamic_stitch(indices: list[Any], data: list[Any], name: str | None = None) -> Tensor:
    """Slices put where their indices say: ``merged[indices[m][i]] = data[m][i]``.

    Where an index occurs more than once, the last one wins.

    Example:
        >>> tf.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]])  # [10, 20, 30]
    """
    return dynamic_stitch_op(list(indices), list(data), name=name)
