"""Sorting along an axis, by TopKV2 as in TensorFlow."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import shape
from runnel.ops.gather import gather
from runnel.ops.top_k import top_k
from runnel.ops.transposition import transpose

_DIRECTIONS = ("ASCENDING", "DESCENDING")


def sort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """``values`` sorted along ``axis``.

    Example:
        >>> tf.sort([3, 1, 2])  # [1, 2, 3]
    """
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction)[0]


def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The int32 indices that sort ``values`` along ``axis``; equal values keep their order."""
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction)[1]


def _sorted(values: Any, axis: int, direction: str) -> tuple[Tensor, Tensor]:
    if direction not in _DIRECTIONS:
        raise ValueError(f"direction must be one of {_DIRECTIONS}, not {direction!r}")
    tensor = convert_to_tensor(values, name="values")
    rank = None if tensor.dims is None else len(tensor.dims)
    if axis not in (-1, (rank or 0) - 1):
        if rank is None or not -rank <= axis < rank:
            raise ValueError(f"axis {axis} is not one of a tensor of rank {rank}")
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        found = _sorted(transpose(tensor, order), -1, direction)
        return transpose(found[0], order), transpose(found[1], order)
    keys = _descending_keys(tensor) if direction == "ASCENDING" else tensor
    sizes = shape(tensor)
    best, indices = top_k(keys, sizes[-1] if rank is None else gather(sizes, rank - 1))
    return (_descending_keys(best) if direction == "ASCENDING" else best), indices


def _descending_keys(values: Tensor) -> Tensor:
    """A map of the values onto themselves that reverses their order, without overflow."""
    dtype = values.dtype.base_dtype
    if dtype.is_unsigned:
        return dtype.max - values
    return -1 - values if dtype.is_integer else -values
