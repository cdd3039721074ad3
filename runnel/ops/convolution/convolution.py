"""Convolutions over one, two and three spatial dimensions, with gradients to any order.

The arithmetic is in `runnel.ops.convolution.conv_lowering`.
"""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims, squeeze
from runnel.ops.convolution import conv_lowering
from runnel.ops.convolution.convolution_family import compute_2d, compute_3d, define_convolution
from runnel.ops.convolution.window_arguments import (
    layout,
    named_padding,
    padding_attributes,
    per_axis,
)
from runnel.ops.reduce_functions import one_of

FLOATS = "T: {half, bfloat16, float, double}"
_WITH_INTEGERS = "T: {half, bfloat16, float, double, int32}"

# Images -----------------------------------------------------------------------------------------

_IMAGE = [
    "strides: list(int)",
    "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
]
image_convolution = define_convolution(
    ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    [_WITH_INTEGERS, *_IMAGE],
    [_WITH_INTEGERS, *_IMAGE],
    [FLOATS, *_IMAGE],
)
conv2d_op, conv2d_backprop_input_op, conv2d_backprop_filter_op = image_convolution[:3]
compute_2d(conv2d_op, image_convolution.forward_dims, conv_lowering.conv2d)
compute_2d(
    conv2d_backprop_input_op,
    image_convolution.input_gradient_dims,
    conv_lowering.conv2d_backprop_input,
)
compute_2d(
    conv2d_backprop_filter_op,
    image_convolution.filter_gradient_dims,
    conv_lowering.conv2d_backprop_filter,
)


def conv2d(
    input: Any,  # noqa: A002
    filter: Any = None,  # noqa: A002
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The convolution of images with filters of shape [height, width, in, out].

    ``strides`` and ``dilations`` are a number, or one for each spatial dimension or for every
    dimension; ``padding`` is "SAME", "VALID" or a list with a pair (before, after) for each
    dimension. A filter for fewer channels than the images have divides these into groups.

    Example:
        >>> images = tf.zeros([8, 28, 28, 3])
        >>> tf.nn.conv2d(images, tf.zeros([5, 5, 3, 16]), 2, "SAME").shape.as_list()
        [8, 14, 14, 16]
    """
    data_format = layout(data_format, 2)
    return conv2d_op(
        input,
        one_of("filters", filters, "filter", filter),
        strides=per_axis("strides", strides, data_format),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        **padding_attributes(padding),
        data_format=data_format,
        dilations=per_axis("dilations", dilations, data_format),
        name=name,
    )


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,  # noqa: A002
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of ``conv2d`` with respect to its input, whose shape is ``input_sizes``.

    Example:
        >>> filters, grad = tf.ones([3, 3, 3, 8]), tf.ones([1, 4, 4, 8])
        >>> dx = tf.nn.conv2d_backprop_input([1, 4, 4, 3], filters, grad, [1, 1, 1, 1], "SAME")
    """
    data_format = layout(data_format, 2)
    return conv2d_backprop_input_op(
        input_sizes,
        one_of("filters", filters, "filter", filter),
        out_backprop,
        strides=per_axis("strides", strides, data_format),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        **padding_attributes(padding),
        data_format=data_format,
        dilations=per_axis("dilations", dilations, data_format),
        name=name,
    )


def conv2d_backprop_filter(
    input: Any,  # noqa: A002
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of ``conv2d`` with respect to its filter, whose shape is ``filter_sizes``.

    Example:
        >>> images, grad = tf.ones([1, 4, 4, 3]), tf.ones([1, 4, 4, 8])
        >>> dw = tf.nn.conv2d_backprop_filter(images, [3, 3, 3, 8], grad, [1, 1, 1, 1], "SAME")
    """
    data_format = layout(data_format, 2)
    return conv2d_backprop_filter_op(
        input,
        filter_sizes,
        out_backprop,
        strides=per_axis("strides", strides, data_format),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        **padding_attributes(padding),
        data_format=data_format,
        dilations=per_axis("dilations", dilations, data_format),
        name=name,
    )


# Sequences: images of height 1 ------------------------------------------------------------------

_AS_SEQUENCE = {"NHWC": "NWC", "NCHW": "NCW"}


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,  # noqa: A002
    dilations: Any = None,
) -> Tensor:
    """The convolution of sequences [batch, width, in] with filters of shape [width, in, out].

    Example:
        >>> tf.nn.conv1d(tf.zeros([8, 100, 3]), tf.zeros([5, 3, 16]), 2, "VALID").shape.as_list()
        [8, 48, 16]
    """
    value = one_of("input", input, "value", value)
    with name_scope(name, "conv1d", [value, filters]) as scope:
        data_format = layout(_AS_SEQUENCE.get(data_format or "", data_format), 1)
        axis = -3 if data_format == "NWC" else -2
        result = conv2d_op(
            expand_dims(value, axis),
            expand_dims(filters, 0),
            strides=[1, *per_axis("stride", stride, data_format)],
            use_cudnn_on_gpu=use_cudnn_on_gpu is not False,
            padding=named_padding(padding, "conv1d"),
            data_format="NHWC" if data_format == "NWC" else "NCHW",
            dilations=[1, *per_axis("dilations", dilations, data_format)],
            name=scope,
        )
        return squeeze(result, [axis])


# Volumes ----------------------------------------------------------------------------------------

_VOLUME = [
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
]
volume_convolution = define_convolution(
    ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
    [FLOATS, *_VOLUME],
    [FLOATS, *_VOLUME, "Tshape: {int32, int64} = DT_INT32"],
    [FLOATS, *_VOLUME],
    sizes_type="Tshape",
)
conv3d_op, conv3d_backprop_input_op, conv3d_backprop_filter_op = volume_convolution[:3]
compute_3d(conv3d_op, volume_convolution.forward_dims, conv_lowering.conv3d)
compute_3d(
    conv3d_backprop_input_op,
    volume_convolution.input_gradient_dims,
    conv_lowering.conv3d_backprop_input,
)
compute_3d(
    conv3d_backprop_filter_op,
    volume_convolution.filter_gradient_dims,
    conv_lowering.conv3d_backprop_filter,
)


def conv3d(
    input: Any,  # noqa: A002
    filter: Any = None,  # noqa: A002
    strides: Any = None,
    padding: Any = None,
    data_format: str | None = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The convolution of volumes with filters of shape [depth, height, width, in, out].

    Example:
        >>> volumes = tf.zeros([2, 16, 16, 16, 1])
        >>> filters = tf.zeros([3, 3, 3, 1, 4])
        >>> tf.nn.conv3d(volumes, filters, [1, 2, 2, 2, 1], "SAME").shape.as_list()
        [2, 8, 8, 8, 4]
    """
    data_format = layout(data_format, 3)
    return conv3d_op(
        input,
        one_of("filters", filters, "filter", filter),
        strides=per_axis("strides", strides, data_format),
        padding=named_padding(padding, "conv3d"),
        data_format=data_format,
        dilations=per_axis("dilations", dilations, data_format),
        name=name,
    )


def conv3d_backprop_filter(
    input: Any,  # noqa: A002
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    data_format: str | None = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of ``conv3d`` with respect to its filter, whose shape is ``filter_sizes``."""
    data_format = layout(data_format, 3)
    return conv3d_backprop_filter_op(
        input,
        filter_sizes,
        out_backprop,
        strides=per_axis("strides", strides, data_format),
        padding=named_padding(padding, "conv3d_backprop_filter"),
        data_format=data_format,
        dilations=per_axis("dilations", dilations, data_format),
        name=name,
    )


conv3d_backprop_filter_v2 = conv3d_backprop_filter
