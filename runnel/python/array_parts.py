"""Names of ``array_ops`` that are not public."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.shapes import is_fully_defined
from runnel.ops.array_shape import rank, rank_op, shape, size, size_op

__all__ = ["rank_internal", "shape_internal", "size_internal"]

shape_internal = shape


def size_internal(
    input: Any,  # noqa: A002 (TensorFlow's name)
    name: str | None = None,
    optimize: bool = True,
    out_type: Any = int32,
) -> Any:
    """``tf.size``; without ``optimize``, also of a known shape by an operation of the step."""
    x = convert_to_tensor(input)
    if not optimize and is_fully_defined(x.dims):
        return size_op(x, out_type=out_type, name=name)
    return size(x, name, out_type)


def rank_internal(
    input: Any,  # noqa: A002 (TensorFlow's name)
    name: str | None = None,
    optimize: bool = True,
) -> Any:
    """``tf.rank``; without ``optimize``, also of a known rank by an operation of the step."""
    return rank(input, name) if optimize else rank_op(convert_to_tensor(input), name=name)
