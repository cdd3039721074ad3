"""Convolutions over any number of dimensions, and dilated ("atrous") ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import shape
from runnel.ops.convolution.convolution import conv1d, conv2d, conv2d_backprop_input_op, conv3d
from runnel.ops.convolution.dilated_windows import (
    required_space_to_batch_paddings,
    with_space_to_batch,
)
from runnel.ops.convolution.sliding_window import along_space
from runnel.ops.convolution.transposed_convolution import conv2d_transpose
from runnel.ops.convolution.window_arguments import layout, per_axis
from runnel.ops.joining import stack
from runnel.ops.reduce_functions import one_of
from runnel.ops.space import batch_to_space_nd, space_to_batch_nd

_FUNCTIONS: dict[int, Any] = {1: conv1d, 2: conv2d, 3: conv3d}


def convolution(
    input: Any,  # noqa: A002
    filter: Any = None,  # noqa: A002
    padding: Any = None,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution over 1, 2 or 3 dimensions, as many as the filter [..., in, out] has.

    ``strides`` and ``dilation_rate`` have a number for each spatial dimension; only one of them
    may be other than 1.

    Example:
        >>> x, filters = tf.zeros([8, 100, 3]), tf.zeros([5, 3, 16])
        >>> tf.nn.convolution(x, filters, "VALID", dilation_rate=[2]).shape.as_list()
        [8, 92, 16]
    """
    filter = one_of("filters", filters, "filter", filter)  # noqa: A001
    rate = one_of("dilations", dilations, "dilation_rate", dilation_rate)
    with name_scope(name, "convolution", [input, filter]) as scope:
        x = convert_to_tensor(input, name="input")
        weights = convert_to_tensor(filter, name="filter")
        dims = weights.dims if weights.dims is not None else x.dims
        if dims is None or not 3 <= len(dims) <= 5:
            raise ValueError(
                "convolution needs a filter of 3, 4 or 5 dimensions: its shape is "
                f"{weights.shape}, and the input's {x.shape}"
            )
        spatial = len(dims) - 2
        layout_name = layout(data_format, spatial)
        steps = per_axis("strides", strides, layout_name)
        spacing = along_space(
            "dilation_rate", per_axis("dilations", rate, layout_name), layout_name
        )

        def convolve(part: Tensor, _: int, part_padding: Any) -> Tensor:
            return _FUNCTIONS[spatial](
                part, weights, steps, part_padding, data_format=layout_name, name=scope
            )

        if max(spacing) == 1:
            return convolve(x, spatial, padding)
        if max(steps) > 1:
            raise ValueError(
                f"strides and dilation_rate cannot both be more than 1, but got {strides} and "
                f"{list(spacing)}"
            )
        return with_space_to_batch(
            x, spacing, padding, convolve, filter_shape=shape(weights), data_format=layout_name
        )


def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: Any, name: str | None = None
) -> Tensor:
    """The convolution of images with filters whose elements are ``rate`` pixels apart.

    Example:
        >>> images, filters = tf.zeros([8, 28, 28, 3]), tf.zeros([3, 3, 3, 16])
        >>> tf.nn.atrous_conv2d(images, filters, 2, "VALID").shape.as_list()
        [8, 24, 24, 16]
    """
    return convolution(value, filters, padding, dilation_rate=[rate, rate], name=name)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """The transpose of ``atrous_conv2d``; ``filters`` are [height, width, out, in].

    Example:
        >>> x, filters = tf.zeros([8, 24, 24, 16]), tf.zeros([3, 3, 3, 16])
        >>> tf.nn.atrous_conv2d_transpose(x, filters, [8, 28, 28, 3], 2, "VALID").shape.as_list()
        [8, 28, 28, 3]
    """
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]):
        x = convert_to_tensor(value, name="value")
        weights = convert_to_tensor(filters, name="filters")
        if rate < 1:
            raise ValueError(f"rate must be positive, but got {rate}")
        if padding not in ("SAME", "VALID"):
            raise ValueError(f"padding must be 'SAME' or 'VALID', but got {padding!r}")
        if rate == 1:
            return conv2d_transpose(x, weights, output_shape, [1, 1, 1, 1], padding)
        sizes = _simplest(convert_to_tensor(output_shape, np.int32, name="output_shape"))
        window = _simplest(shape(weights))[:2]
        extra = (window - 1) * rate if padding == "SAME" else window * 0
        base = _stack([extra // 2, extra - extra // 2], axis=1)
        # The padding of the convolution that is transposed here; its excess is all that it cut off.
        paddings, excess = map(
            _simplest, required_space_to_batch_paddings(sizes[1:3], [rate, rate], base)
        )
        padded = (sizes[1:3] + paddings[:, 0] + paddings[:, 1]) // rate
        parts = conv2d_backprop_input_op(
            _stack([sizes[0] * rate * rate, padded[0], padded[1], sizes[3]]),
            weights,
            space_to_batch_nd(x, [rate, rate], excess),
            strides=[1, 1, 1, 1],
            padding="VALID",
        )
        return batch_to_space_nd(parts, [rate, rate], paddings)


def _stack(values: list[Any], axis: int = 0) -> Any:
    """``values`` joined: now where all of them are known, else by an operation."""
    if any(isinstance(value, Tensor) for value in values):
        return stack(values, axis=axis)
    return np.stack(values, axis=axis)


def _simplest(tensor: Tensor) -> Any:
    """The value of ``tensor`` where it is known while the graph is built."""
    known = constant_value(tensor)
    return tensor if known is None else known
