"""Convolutions of ``tf.contrib.layers``."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import add_arg_scope, layer_of
from runnel.contrib.framework.variables import model_variable
from runnel.contrib.layers.initializers import xavier_initializer
from runnel.contrib.layers.scoping import (
    add_variable_to_collections,
    as_input,
    channels,
    finished,
    layer_scope,
)
from runnel.layers.convolutions import (
    Conv1D,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    SeparableConv2D,
)
from runnel.layers.windows import numbers
from runnel.ops.activations import relu
from runnel.ops.bias import bias_add
from runnel.ops.convolution.depthwise_convolution import depthwise_conv2d
from runnel.variables.initializers import Zeros

_NAMES = {"kernel": "weights", "bias": "biases"}
_SEPARABLE_NAMES = {
    "bias": "biases",
    "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}


@add_arg_scope
def convolution(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Any = relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008 (makes no operation)
    weights_regularizer: Any = None,
    biases_initializer: Any = Zeros,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    conv_dims: int | None = None,
) -> Any:
    """A convolution over one, two or three dimensions, normalised, then activated.

    With a ``normalizer_fn`` there are no biases. The variables are ``weights`` and ``biases``.

    Example:
        >>> tf.contrib.layers.conv2d(images, 64, [3, 3], scope="conv1")
    """
    inputs = as_input(inputs)
    rank = len(inputs.shape) - 2
    if conv_dims is not None and conv_dims != rank:
        raise ValueError(
            f"A convolution over {conv_dims} dimensions takes inputs of rank {conv_dims + 2}, not "
            f"of shape {inputs.shape}"
        )
    if rank not in (1, 2, 3):
        raise ValueError(f"Convolution not supported for input with rank {rank + 2}")
    with layer_scope(scope, "Conv", inputs, reuse, _NAMES) as opened:
        layer = (Conv1D, Conv2D, Conv3D)[rank - 1](
            filters=num_outputs,
            kernel_size=kernel_size,
            strides=stride,
            padding=padding,
            data_format=channels(data_format),
            dilation_rate=rate,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=opened.name,
            dtype=inputs.dtype.base_dtype,
            _scope=opened,
            _reuse=reuse,
        )
        outputs = layer(inputs)
        add_variable_to_collections(layer.kernel, variables_collections, "weights")
        add_variable_to_collections(layer.bias, variables_collections, "biases")
        return finished(
            *(outputs, opened, activation_fn, outputs_collections),
            *(normalizer_fn, normalizer_params),
        )


conv1d = layer_of(convolution, "convolution1d", "A convolution over sequences.", conv_dims=1)
conv2d = layer_of(convolution, "convolution2d", "A convolution over images.", conv_dims=2)
conv3d = layer_of(convolution, "convolution3d", "A convolution over volumes.", conv_dims=3)


# Transposed -------------------------------------------------------------------------------------


def _transposed(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    activation_fn: Any = relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = Zeros,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    *,
    made: Any,
    default_name: str,
) -> Any:
    inputs = as_input(inputs)
    with layer_scope(scope, default_name, inputs, reuse, _NAMES) as opened:
        layer = made(
            filters=num_outputs,
            kernel_size=kernel_size,
            strides=stride,
            padding=padding,
            data_format=channels(data_format),
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer or xavier_initializer(),
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=opened.name,
            dtype=inputs.dtype.base_dtype,
            _scope=opened,
            _reuse=reuse,
        )
        outputs = layer(inputs)
        add_variable_to_collections(layer.kernel, variables_collections, "weights")
        add_variable_to_collections(layer.bias, variables_collections, "biases")
        return finished(
            *(outputs, opened, activation_fn, outputs_collections),
            *(normalizer_fn, normalizer_params),
        )


conv2d_transpose = layer_of(
    _transposed,
    "convolution2d_transpose",
    "The transpose of a convolution over images: it makes them larger.",
    made=Conv2DTranspose,
    default_name="Conv2d_transpose",
)
conv3d_transpose = layer_of(
    _transposed,
    "convolution3d_transpose",
    "The transpose of a convolution over volumes: it makes them larger.",
    made=Conv3DTranspose,
    default_name="Conv3d_transpose",
)


# Separable --------------------------------------------------------------------------------------


@add_arg_scope
def separable_convolution2d(
    inputs: Any,
    num_outputs: int | None,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = "NHWC",
    rate: Any = 1,
    activation_fn: Any = relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),  # noqa: B008 (makes no operation)
    pointwise_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = Zeros,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A convolution of each channel by itself, then one that mixes them.

    Without ``num_outputs`` the channels are not mixed. The variables are ``depthwise_weights``,
    ``pointwise_weights`` and ``biases``.
    """
    inputs = as_input(inputs)
    use_bias = normalizer_fn is None and biases_initializer is not None
    with layer_scope(scope, "SeparableConv2d", inputs, reuse, _SEPARABLE_NAMES) as opened:
        if num_outputs is not None:
            layer = SeparableConv2D(
                filters=num_outputs,
                kernel_size=kernel_size,
                strides=stride,
                padding=padding,
                data_format=channels(data_format),
                dilation_rate=numbers(rate, 2, "rate"),
                depth_multiplier=depth_multiplier,
                use_bias=use_bias,
                depthwise_initializer=weights_initializer,
                pointwise_initializer=pointwise_initializer or weights_initializer,
                bias_initializer=biases_initializer,
                depthwise_regularizer=weights_regularizer,
                pointwise_regularizer=weights_regularizer,
                bias_regularizer=biases_regularizer,
                trainable=trainable,
                name=opened.name,
                dtype=inputs.dtype.base_dtype,
                _scope=opened,
                _reuse=reuse,
            )
            outputs = layer(inputs)
            kernels, bias = [layer.depthwise_kernel, layer.pointwise_kernel], layer.bias
        else:
            first = channels(data_format) == "channels_first"
            depth = inputs.shape[1 if first else 3].value
            assert depth is not None, "the number of channels must be known"
            kind = inputs.dtype.base_dtype
            form = "NCHW" if first else "NHWC"
            kernel = model_variable(
                "depthwise_weights",
                shape=[*numbers(kernel_size, 2, "kernel_size"), depth, depth_multiplier],
                dtype=kind,
                initializer=weights_initializer,
                regularizer=weights_regularizer,
                trainable=trainable,
            )
            steps = list(numbers(stride, 2, "stride"))
            outputs = depthwise_conv2d(
                inputs,
                kernel,
                [1, 1, *steps] if first else [1, *steps, 1],
                padding,
                rate=numbers(rate, 2, "rate"),
                data_format=form,
            )
            kernels, bias = [kernel], None
            if use_bias:
                bias = model_variable(
                    "biases",
                    shape=[depth * depth_multiplier],
                    dtype=kind,
                    initializer=biases_initializer,
                    regularizer=biases_regularizer,
                    trainable=trainable,
                )
                outputs = bias_add(outputs, bias, data_format=form)
        for kernel in kernels:
            add_variable_to_collections(kernel, variables_collections, "weights")
        add_variable_to_collections(bias, variables_collections, "biases")
        return finished(
            *(outputs, opened, activation_fn, outputs_collections),
            *(normalizer_fn, normalizer_params),
        )


convolution1d = conv1d
convolution2d = conv2d
convolution3d = conv3d
convolution2d_transpose = conv2d_transpose
convolution3d_transpose = conv3d_transpose
separable_conv2d = separable_convolution2d
