"""Datasets of what Python generators give."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.data.element_structure import (
    component_attrs,
    flatten,
    structure_from,
    values_up_to,
)
from runnel.graph.conversion import convert_to_tensor, make_array
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import get_default_graph
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.shapes import compatible_dims, format_dims
from runnel.ops.data.function_ops import PythonGenerators, generator_op
from runnel.ops.py_function import translated
from runnel.pipelines.pipeline import END

_numbers = itertools.count()


def generated(
    generator: Callable[..., Any], output_types: Any, output_shapes: Any, args: Any
) -> tuple[Tensor, Any]:
    """The variant and the structure of a dataset of what ``generator(*args)`` gives."""
    if not callable(generator):
        raise TypeError("`generator` must be callable.")
    structure = structure_from(output_types, output_shapes)
    token = f"generator_{next(_numbers)}"
    get_default_graph().attached(PythonGenerators)[token] = _drawing(
        generator, structure, output_types
    )
    tensors = [convert_to_tensor(value) for value in (args or ())]
    variant = generator_op(tensors, token=token, **component_attrs(structure))
    skip_op_ids(2)  # TensorFlow has a dataset of a number, of which it makes this one
    return variant, structure


def _drawing(
    generator: Callable[..., Any], structure: Any, output_types: Any
) -> Callable[..., Callable[[], Any]]:
    places = flatten(structure)

    def begin(*args: Any) -> Callable[[], Any]:
        """Calls the generator; what it returns draws its elements."""
        values = [np.array(value)[()] if not np.ndim(value) else np.array(value) for value in args]
        try:
            iterator = iter(generator(*values))
        except Exception as error:
            raise translated(error) from error

        def draw() -> Any:
            try:
                value = next(iterator, END)
            except Exception as error:
                raise translated(error) from error
            if value is END:
                return END
            return _element(value, places, output_types)

        return draw

    return begin


def _element(value: Any, places: list[Any], output_types: Any) -> list[np.ndarray]:
    """What the generator gave as components."""
    try:
        leaves = values_up_to(output_types, value)
    except TypeError as error:
        raise InvalidArgumentError(
            None,
            None,
            "`generator` yielded an element that did not match the expected structure. The "
            f"expected structure was {output_types}, but the yielded element was {value!r}. "
            f"{error}",
        ) from None
    return [_component(leaf, place) for leaf, place in zip(leaves, places, strict=True)]


def _component(value: Any, place: Any) -> np.ndarray:
    try:
        if type(value) is np.ndarray and value.dtype == place.dtype.np_dtype != object:
            array = value.copy()  # the generator may change it later
        else:
            array = _converted(value, place)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            None,
            None,
            "`generator` yielded an element that could not be converted to the expected type. The "
            f"expected type was {place.dtype.name}, but the yielded element was {value!r}. {error}",
        ) from None
    if not compatible_dims(array.shape, place.dims):
        raise InvalidArgumentError(
            None,
            None,
            f"`generator` yielded an element of shape {format_dims(array.shape)} where an element "
            f"of shape {format_dims(place.dims)} was expected.",
        )
    return array


def _converted(value: Any, place: Any) -> np.ndarray:
    wanted = place.dtype.np_dtype
    if wanted == object:
        return make_array(value, place.dtype)
    try:
        return np.array(value, wanted)  # a copy: the generator may change it later
    except OverflowError:  # NumPy wrapped such numbers around when TensorFlow 1.15 was made
        return np.array(value).astype(wanted)
