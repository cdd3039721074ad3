"""Ways of choosing the number of parts of a variable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from runnel.graph import dtypes
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.shapes import TensorShape
from runnel.variables.partitioning import Partitioner
from runnel.variables.variable import Variable


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Cuts variables into ``num_shards`` parts along ``axis`` (fewer if it is shorter).

    Example:
        >>> tf.get_variable("table", [1000, 8], partitioner=tf.fixed_size_partitioner(4))
    """

    def partitioner(shape: TensorShape, **unused: Any) -> list[int]:
        parts = [1] * len(shape)
        parts[axis] = min(num_shards, _size(shape, axis))
        return parts

    return partitioner


def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """Cuts variables along ``axis`` so that no part is larger than ``max_shard_bytes``.

    A single slice along the axis is never cut; there are at most ``max_shards`` parts.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError("max_shard_bytes and bytes_per_string_element must be positive")
    if max_shards is not None and max_shards < 1:
        raise ValueError("max_shards must be positive")

    def partitioner(shape: TensorShape, dtype: Any) -> list[int]:
        if not isinstance(shape, TensorShape) or not shape.is_fully_defined():
            raise ValueError(f"A partitioner needs a fully defined TensorShape, not {shape!r}")
        length = _size(shape, axis)
        slice_bytes = (_elements(shape) / length) * _bytes(
            as_dtype(dtype), bytes_per_string_element
        )
        slices_in_part = max(1, math.floor(max_shard_bytes / slice_bytes))
        count = math.ceil(length / slices_in_part)
        parts = [1] * len(shape)
        parts[axis] = min(max_shards, count) if max_shards else count
        return parts

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """Cuts variables along ``axis`` into parts of at least ``min_slice_size`` bytes.

    There are at most ``max_partitions`` parts.
    """

    def partitioner(shape: TensorShape, dtype: Any) -> list[int]:
        if axis >= len(shape):
            raise ValueError(f"A variable of shape {shape} has no dimension {axis} to cut along")
        total = _elements(shape) * _bytes(as_dtype(dtype), bytes_per_string_element)
        parts = [1] * len(shape)
        wanted = math.ceil(total / min_slice_size)
        parts[axis] = max(1, min(_size(shape, axis), max_partitions, wanted))
        return parts

    return partitioner


def _size(shape: TensorShape, axis: int) -> int:
    size = shape.as_list()[axis]
    if size is None:
        raise ValueError(f"Dimension {axis} of {shape} must be known to cut along it")
    return size


def _elements(shape: TensorShape) -> int:
    count = shape.num_elements()
    if count is None:
        raise ValueError(f"The shape {shape} must be fully defined to partition a variable")
    return count


def _bytes(dtype: DType, bytes_per_string: int) -> int:
    return bytes_per_string if dtype.base_dtype is dtypes.string else dtype.np_dtype.itemsize


def create_partitioned_variables(
    shape: Sequence[int],
    slicing: Sequence[int],
    initializer: Any,
    dtype: Any = dtypes.float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Variable]:
    """The parts of a variable of ``shape`` that is cut as ``slicing`` says.

    ``tf.get_variable`` with a partitioner does the same and returns them as one.
    """
    from runnel.variables.variable_scope import get_variable_scope, variable_scope
    from runnel.variables.variable_store import default_variable_store

    if len(shape) != len(slicing):
        raise ValueError(f"The shape {shape} and the slicing {slicing} must be of equal length")
    if len(shape) < 1:
        raise ValueError("A partitioned variable must have rank at least 1, but this is a scalar")
    with variable_scope(name, "PartitionedVariable", reuse=reuse):
        whole = get_variable_scope()._get_partitioned_variable(
            default_variable_store(),
            None,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            trainable=trainable,
            partitioner=lambda **unused: slicing,
            collections=collections,
        )
    return list(whole)
