"""``tensor_shape``: static shapes."""

from __future__ import annotations

from typing import Any

from runnel.graph.shapes import Dimension, TensorShape, as_shape, unknown_shape

__all__ = [
    "TensorShapeV1",
    "as_dimension",
    "as_shape",
    "matrix",
    "scalar",
    "unknown_shape",
    "vector",
]

TensorShapeV1 = TensorShape


def as_dimension(value: Any) -> Dimension:
    """``value``, a number or None, as a ``tf.Dimension``."""
    return value if isinstance(value, Dimension) else Dimension(value)


def scalar() -> TensorShape:
    """The shape of a single number."""
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    """The shape of a vector."""
    return TensorShape([length])


def matrix(rows: Any, cols: Any) -> TensorShape:
    """The shape of a matrix."""
    return TensorShape([rows, cols])
