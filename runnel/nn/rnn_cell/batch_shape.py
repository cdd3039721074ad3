"""Shapes of batches: a batch size before the size of a state or an output."""

from __future__ import annotations

from typing import Any

from runnel.graph.constant_value import constant_value
from runnel.graph.dtypes import int32
from runnel.graph.operation import Tensor
from runnel.graph.shapes import Dims, as_dims, is_fully_defined
from runnel.ops.array_shape import expand_dims
from runnel.ops.constants import constant
from runnel.ops.joining import concat


def batch_shape(prefix: Any, suffix: Any) -> Tensor:
    """The shape [*prefix, *suffix] as a tensor; both may be numbers, shapes or tensors."""
    return concat([_as_vector(prefix, "prefix"), _as_vector(suffix, "suffix")], 0)


def static_batch_shape(prefix: Any, suffix: Any) -> Dims:
    """What is known of the shape [*prefix, *suffix] while the graph is being built."""
    first, rest = _static(prefix), _static(suffix)
    return None if first is None or rest is None else first + rest


def _as_vector(sizes: Any, what: str) -> Tensor:
    if isinstance(sizes, Tensor):
        if sizes.dims == ():
            return expand_dims(sizes, 0)
        if sizes.dims is None or len(sizes.dims) != 1:
            raise ValueError(
                f"A {what} of a shape must be a scalar or a vector, but {sizes.name} has shape "
                f"{sizes.shape}"
            )
        return sizes
    dims = as_dims(sizes)
    if not is_fully_defined(dims):
        raise ValueError(f"The {what} {sizes} of a shape must be known; pass a tensor otherwise")
    return constant(list(dims or ()), int32)


def _static(sizes: Any) -> Dims:
    if not isinstance(sizes, Tensor):
        return as_dims(sizes)
    value = constant_value(sizes)
    if value is None:
        # TensorFlow's choice: of a vector that is not known not even the length is used.
        return (None,) if sizes.dims == () else None
    return tuple(int(size) for size in value.reshape(-1))
