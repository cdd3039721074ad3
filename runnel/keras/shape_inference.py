"""The shape of a layer's outputs, found by a call in a graph that is thrown away."""

from __future__ import annotations

import copy
from typing import Any

from runnel.graph.graph import Graph
from runnel.graph.shapes import TensorShape, as_dims
from runnel.ops.constants import placeholder


def shape_of_call(layer: Any, input_shape: Any) -> Any:
    """The static shape (or shapes) of what ``layer`` makes of inputs of ``input_shape``."""
    several = isinstance(input_shape, list) and (
        not input_shape or isinstance(input_shape[0], list | tuple | TensorShape)
    )
    with Graph().as_default():
        kind = layer.dtype or "float32"
        shapes = input_shape if several else [input_shape]
        made = [placeholder(kind, list(as_dims(shape) or ())) for shape in shapes]
        other = _unbuilt(layer)
        outputs = other(made if several else made[0])
    if isinstance(outputs, list | tuple):
        return [TensorShape(output.dims) for output in outputs]
    return TensorShape(outputs.dims)


def _unbuilt(layer: Any) -> Any:
    if not layer.built:
        return copy.copy(layer)
    return type(layer).from_config(layer.get_config())


def placeholders_like(shape: Any, dtype: Any) -> Any:
    """A placeholder of a shape, or one for each of a list or dict of shapes."""
    if isinstance(shape, dict):
        return {name: placeholders_like(one, dtype) for name, one in shape.items()}
    if isinstance(shape, list) and shape and isinstance(shape[0], list | tuple | TensorShape):
        return [placeholders_like(one, dtype) for one in shape]
    return placeholder(dtype, list(as_dims(shape) or ()))
