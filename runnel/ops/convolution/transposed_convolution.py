"""Transposed convolutions: the gradient of a convolution's input, as a layer that enlarges."""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims, squeeze
from runnel.ops.convolution.convolution import conv2d_backprop_input_op, conv3d_backprop_input_op
from runnel.ops.convolution.window_arguments import (
    layout,
    named_padding,
    padding_attributes,
    per_axis,
)
from runnel.ops.joining import concat
from runnel.ops.reduce_functions import one_of


def conv1d_transpose(
    input: Any,  # noqa: A002
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of ``conv1d``; ``filters`` are [width, out, in].

    Example:
        >>> x, filters = tf.zeros([8, 50, 16]), tf.zeros([5, 3, 16])
        >>> tf.nn.conv1d_transpose(x, filters, [8, 100, 3], 2).shape.as_list()
        [8, 100, 3]
    """
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]) as scope:
        data_format = layout(data_format, 1)
        axis = 1 if data_format == "NWC" else 2
        x, weights = expand_dims(input, axis), expand_dims(filters, 0)
        if isinstance(output_shape, Tensor):
            sizes: Any = concat([output_shape[:axis], [1], output_shape[axis:]], 0)
        else:
            known = [int(size) for size in output_shape]
            sizes = [*known[:axis], 1, *known[axis:]]
        result = conv2d_backprop_input_op(
            sizes,
            weights,
            x,
            strides=[1, *per_axis("strides", strides, data_format)],
            padding=named_padding(padding, "conv1d_transpose"),
            data_format="NHWC" if data_format == "NWC" else "NCHW",
            dilations=[1, *per_axis("dilations", dilations, data_format)],
            name=scope,
        )
        return squeeze(result, [axis])


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,  # noqa: A002
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,  # noqa: A002
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of ``conv2d``; the filter is [height, width, out, in].

    Example:
        >>> x, filters = tf.zeros([8, 14, 14, 16]), tf.zeros([5, 5, 3, 16])
        >>> tf.nn.conv2d_transpose(x, filters, [8, 28, 28, 3], 2).shape.as_list()
        [8, 28, 28, 3]
    """
    value = one_of("input", input, "value", value)
    filter = one_of("filters", filters, "filter", filter)  # noqa: A001
    data_format = layout(data_format, 2)
    with name_scope(name, "conv2d_transpose", [value, filter, output_shape]) as scope:
        return conv2d_backprop_input_op(
            output_shape,
            filter,
            value,
            strides=per_axis("strides", strides, data_format),
            **padding_attributes(padding),
            data_format=data_format,
            dilations=per_axis("dilations", dilations, data_format),
            name=scope,
        )


def conv3d_transpose(
    value: Any = None,
    filter: Any = None,  # noqa: A002
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    name: str | None = None,
    input: Any = None,  # noqa: A002
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of ``conv3d``; the filter is [depth, height, width, out, in].

    Example:
        >>> x, filters = tf.zeros([2, 8, 8, 8, 4]), tf.zeros([3, 3, 3, 1, 4])
        >>> tf.nn.conv3d_transpose(x, filters, [2, 16, 16, 16, 1], [1, 2, 2, 2, 1]).shape.as_list()
        [2, 16, 16, 16, 1]
    """
    value = one_of("input", input, "value", value)
    filter = one_of("filters", filters, "filter", filter)  # noqa: A001
    data_format = layout(data_format, 3)
    with name_scope(name, "conv3d_transpose", [value, filter, output_shape]) as scope:
        return conv3d_backprop_input_op(
            output_shape,
            filter,
            value,
            strides=per_axis("strides", strides, data_format),
            padding=named_padding(padding, "conv3d_transpose"),
            data_format=data_format,
            dilations=per_axis("dilations", dilations, data_format),
            name=scope,
        )


def conv_transpose(
    input: Any,  # noqa: A002
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of ``convolution`` over as many dimensions as ``output_shape`` has.

    Example:
        >>> x, filters = tf.zeros([8, 50, 16]), tf.zeros([5, 3, 16])
        >>> tf.nn.conv_transpose(x, filters, [8, 100, 3], 2).shape.as_list()
        [8, 100, 3]
    """
    if isinstance(output_shape, Tensor):
        length = output_shape.dims[0] if output_shape.dims else None
    else:
        length = len(output_shape)
    functions: dict[int | None, Any] = {
        3: conv1d_transpose,
        4: conv2d_transpose,
        5: conv3d_transpose,
    }
    if length not in functions:
        raise ValueError(f"output_shape must have 3, 4 or 5 elements, but got {output_shape!r}")
    with name_scope(name, "conv_transpose", [input, filters, output_shape]) as scope:
        return functions[length](
            input,
            filters,
            output_shape,
            strides,
            padding=padding,
            data_format=data_format,
            dilations=dilations,
            name=scope,
        )
