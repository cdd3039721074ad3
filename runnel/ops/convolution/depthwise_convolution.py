"""Depthwise convolutions: every channel has filters of its own; and separable ones."""

from __future__ import annotations

from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import shape
from runnel.ops.convolution import conv_lowering
from runnel.ops.convolution.convolution import FLOATS, conv2d
from runnel.ops.convolution.convolution_family import compute_2d, define_convolution
from runnel.ops.convolution.dilated_windows import with_space_to_batch
from runnel.ops.convolution.window_arguments import layout, padding_attributes, per_axis
from runnel.ops.convolution.window_dims import with_rank
from runnel.ops.reduce_functions import one_of

_ATTRS = [
    FLOATS,
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
]
_NAME = "DepthwiseConv2dNative"
depthwise_convolution = define_convolution(
    (_NAME, f"{_NAME}BackpropInput", f"{_NAME}BackpropFilter"),
    _ATTRS,
    _ATTRS,
    _ATTRS,
    depthwise=True,
)
depthwise_op, depthwise_backprop_input_op, depthwise_backprop_filter_op = depthwise_convolution[:3]
compute_2d(depthwise_op, depthwise_convolution.forward_dims, conv_lowering.depthwise_conv2d_native)
compute_2d(
    depthwise_backprop_input_op,
    depthwise_convolution.input_gradient_dims,
    conv_lowering.depthwise_conv2d_native_backprop_input,
)
compute_2d(
    depthwise_backprop_filter_op,
    depthwise_convolution.filter_gradient_dims,
    conv_lowering.depthwise_conv2d_native_backprop_filter,
)


def _attributes(strides: Any, padding: Any, data_format: str | None, dilations: Any) -> Any:
    data_format = layout(data_format, 2)
    return {
        "strides": per_axis("strides", strides, data_format),
        "data_format": data_format,
        "dilations": per_axis("dilations", dilations, data_format),
        **padding_attributes(padding),
    }


def depthwise_conv2d_native(
    input: Any,  # noqa: A002
    filter: Any,  # noqa: A002
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The convolution of each channel with its own filters, as one operation.

    ``filter`` is [height, width, channels, multiplier]; the result has channels * multiplier
    channels.

    Example:
        >>> images = tf.zeros([8, 28, 28, 3])
        >>> filters = tf.zeros([3, 3, 3, 2])
        >>> tf.nn.depthwise_conv2d_native(images, filters, [1, 1, 1, 1], "SAME").shape.as_list()
        [8, 28, 28, 6]
    """
    attributes = _attributes(strides, padding, data_format, dilations)
    return depthwise_op(input, filter, **attributes, name=name)


def depthwise_conv2d_native_backprop_input(
    input_sizes: Any,
    filter: Any,  # noqa: A002
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of ``depthwise_conv2d_native`` with respect to its input."""
    attributes = _attributes(strides, padding, data_format, dilations)
    return depthwise_backprop_input_op(input_sizes, filter, out_backprop, **attributes, name=name)


def depthwise_conv2d_native_backprop_filter(
    input: Any,  # noqa: A002
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of ``depthwise_conv2d_native`` with respect to its filter."""
    attributes = _attributes(strides, padding, data_format, dilations)
    return depthwise_backprop_filter_op(input, filter_sizes, out_backprop, **attributes, name=name)


depthwise_conv2d_backprop_input = depthwise_conv2d_native_backprop_input
depthwise_conv2d_backprop_filter = depthwise_conv2d_native_backprop_filter


def depthwise_conv2d(
    input: Any,  # noqa: A002
    filter: Any,  # noqa: A002
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution of each channel with its own filters, [height, width, channels, multiplier].

    ``rate`` (or ``dilations``) has the distance between a filter's elements along both spatial
    dimensions; where it is more than 1, the strides must be 1.

    Example:
        >>> images, filters = tf.zeros([8, 28, 28, 3]), tf.zeros([3, 3, 3, 2])
        >>> tf.nn.depthwise_conv2d(images, filters, [1, 2, 2, 1], "SAME").shape.as_list()
        [8, 14, 14, 6]
    """
    rate = one_of("dilations", dilations, "rate", rate)
    with name_scope(name, "depthwise", [input, filter]) as scope:
        x = convert_to_tensor(input, name="tensor_in")
        weights = convert_to_tensor(filter, name="filter_in")
        return _dilated(x, weights, strides, padding, rate, data_format, scope)


def _dilated(
    x: Tensor,
    weights: Tensor,
    strides: Any,
    padding: Any,
    rate: Any,
    data_format: str | None,
    name: str,
) -> Tensor:
    rate = [1, 1] if rate is None else list(rate)
    data_format = layout(data_format, 2)
    if max(rate) > 1 and any(s != 1 for s in per_axis("strides", strides, data_format)):
        raise ValueError(f"strides must be 1 where the rate is more: got {strides} and {rate}")

    def convolve(part: Tensor, _: int, part_padding: Any) -> Tensor:
        return depthwise_conv2d_native(
            part, weights, strides, part_padding, data_format=data_format, name=name
        )

    return with_space_to_batch(
        x, rate, padding, convolve, filter_shape=shape(weights), data_format=data_format
    )


def separable_conv2d(
    input: Any,  # noqa: A002
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A depthwise convolution, whose channels are then mixed by one with a window of 1 x 1.

    Example:
        >>> images = tf.zeros([8, 28, 28, 3])
        >>> depthwise, pointwise = tf.zeros([3, 3, 3, 2]), tf.zeros([1, 1, 6, 16])
        >>> y = tf.nn.separable_conv2d(images, depthwise, pointwise, [1, 1, 1, 1], "SAME")
        >>> y.shape.as_list()
        [8, 28, 28, 16]
    """
    rate = one_of("dilations", dilations, "rate", rate)
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        x = convert_to_tensor(input, name="tensor_in")
        depthwise = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        height, width, *_ = with_rank("the pointwise filter", pointwise.dims, 4)
        if height not in (1, None) or width not in (1, None):
            raise ValueError(
                f"the pointwise filter must have a window of 1 x 1, but its shape is "
                f"{pointwise.shape}"
            )
        each = _dilated(x, depthwise, strides, padding, rate, data_format, "depthwise")
        return conv2d(each, pointwise, 1, "VALID", data_format=data_format, name=scope)
