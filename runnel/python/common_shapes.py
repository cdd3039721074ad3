"""``common_shapes``: what the shapes of tensors become together."""

from __future__ import annotations

from typing import Any

from runnel.graph.shapes import TensorShape
from runnel.ops.broadcasting import broadcast_static_shape

__all__ = ["broadcast_shape", "has_fully_defined_shape", "is_broadcast_compatible", "rank"]


def has_fully_defined_shape(tensor: Any) -> bool:
    """Whether all sizes of a tensor are known."""
    return bool(tensor.shape.is_fully_defined())


def rank(tensor: Any) -> int | None:
    """The rank of a tensor, if it is known."""
    return tensor.shape.rank  # type: ignore[no-any-return]


def broadcast_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape of two shapes broadcast together; an error if they do not fit."""
    return broadcast_static_shape(TensorShape(shape_x), TensorShape(shape_y))


def is_broadcast_compatible(shape_x: Any, shape_y: Any) -> bool:
    """Whether two shapes fit each other; not if the rank of one is unknown."""
    first, second = TensorShape(shape_x), TensorShape(shape_y)
    if first.rank is None or second.rank is None:
        return False
    try:
        broadcast_shape(first, second)
    except ValueError:
        return False
    return True
