"""Layers over maps of features: the greatest of groups, the places of features, rows of images."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import add_arg_scope
from runnel.contrib.framework.variables import model_variable
from runnel.contrib.layers.scoping import as_input, channels, collect_named_outputs
from runnel.graph.dtypes import float32
from runnel.graph.graph import name_scope
from runnel.ops.array_shape import reshape, shape
from runnel.ops.broadcasting import meshgrid
from runnel.ops.joining import concat
from runnel.ops.ranges import lin_space
from runnel.ops.reduce_functions import reduce_max, reduce_sum
from runnel.ops.softmax import softmax
from runnel.ops.transposition import transpose
from runnel.variables.initializers import Constant, Ones
from runnel.variables.variable_scope import variable_scope


@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Any:
    """The greatest of each group of features: ``num_units`` groups along ``axis``.

    Goodfellow et al., *Maxout Networks*, 2013.
    """
    with variable_scope(scope, "MaxOut", [inputs]):
        given = as_input(inputs)
        dims = given.shape.as_list()
        count = dims[axis]
        if count is None or count % num_units:
            raise ValueError(
                f"number of features({count}) is not a multiple of num_units({num_units})"
            )
        dims[axis] = num_units
        known = [size if size is not None else shape(given)[i] for i, size in enumerate(dims)]
        groups = reshape(given, [*known, count // num_units])
        outputs = reduce_max(groups, -1)
        outputs.set_shape(dims)
        return outputs


@add_arg_scope
def spatial_softmax(
    features: Any,
    temperature: float | None = None,
    name: str | None = None,
    variables_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Any:
    """Where each feature is, on average: the coordinates, from -1 to 1, of each channel.

    The softmax over all places, divided by the ``temperature``, a variable, weighs them. (Finn et
    al., *Learning Visual Feature Spaces for Robotic Manipulation*, 2016.)

    Example:
        >>> points = tf.contrib.layers.spatial_softmax(net)  # [batch, 2 * channels]
    """
    with variable_scope(name, "spatial_softmax"):
        given = as_input(features)
        first = channels(data_format) == "channels_first"
        axes = (2, 3) if first else (1, 2)
        count = given.shape[1 if first else 3].value
        sizes = [
            shape(given)[axis] if given.shape[axis].value is None else given.shape[axis].value
            for axis in axes
        ]
        down, across = meshgrid(*(lin_space(-1.0, 1.0, n) for n in sizes), indexing="ij")
        begin = Ones() if temperature is None else Constant(temperature)
        collections = variables_collections
        if isinstance(collections, dict):
            collections = collections.get("temperature")
        divisor = model_variable(
            "temperature",
            shape=(),
            dtype=float32,
            initializer=begin,
            collections=collections if trainable else None,
            trainable=trainable,
        )
        places = sizes[0] * sizes[1]
        rows = given if first else transpose(given, [0, 3, 1, 2])
        weights = softmax(reshape(rows, [-1, places]) / divisor)
        means = [
            reduce_sum(reshape(grid, [-1]) * weights, [1], keepdims=True) for grid in (down, across)
        ]
        points = reshape(concat(means, 1), [-1, 2 * count])
        points.set_shape([None, 2 * count])
        return points


@add_arg_scope
def images_to_sequence(
    inputs: Any, data_format: str = "NHWC", outputs_collections: Any = None, scope: Any = None
) -> Any:
    """The rows of images as sequences: [width, images * height, channels]."""
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with name_scope(scope, "ImagesToSequence", [inputs]) as opened:
        given = as_input(inputs)
        given = transpose(given, [0, 2, 3, 1]) if data_format == "NCHW" else given
        _, _, width, depth = given.shape.as_list()
        size = shape(given)
        count = size[0] * size[1]
        rows = reshape(given, [count, size[2], depth])
        outputs = transpose(rows, [1, 0, 2])
        outputs.set_shape([width, None, depth])
        return collect_named_outputs(outputs_collections, opened, outputs)


@add_arg_scope
def sequence_to_images(
    inputs: Any,
    height: int,
    output_data_format: str = "channels_last",
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """The images of which :func:`images_to_sequence` makes ``inputs``."""
    with name_scope(scope, "SequenceToImages", [inputs]) as opened:
        given = as_input(inputs)
        width, count, depth = given.shape.as_list()
        images = None if count is None else count // height
        size = shape(given)
        columns = size[0] if width is None else width
        rows = transpose(given, [1, 0, 2])
        outputs = reshape(rows, [-1 if images is None else images, height, columns, depth])
        if output_data_format == "channels_first":
            outputs = transpose(outputs, [0, 3, 1, 2])
        return collect_named_outputs(outputs_collections, opened, outputs)
