"""``tf.contrib.layers.conv2d_in_plane``: one filter for every channel."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import add_arg_scope
from runnel.contrib.framework.variables import model_variable
from runnel.contrib.layers.initializers import xavier_initializer
from runnel.contrib.layers.scoping import (
    add_variable_to_collections,
    as_input,
    finished,
    layer_scope,
)
from runnel.layers.windows import numbers
from runnel.ops.activations import relu
from runnel.ops.bias import bias_add
from runnel.ops.convolution.depthwise_convolution import depthwise_conv2d
from runnel.ops.padding import tile
from runnel.variables.initializers import Zeros


@add_arg_scope
def convolution2d_in_plane(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
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
) -> Any:
    """Convolves each channel of ``inputs`` by itself, all with the same filter.

    The variables are ``weights``, of one channel, and ``biases``, of every channel.

    Example:
        >>> tf.contrib.layers.conv2d_in_plane(tf.ones([1, 8, 8, 3]), 3).shape
        TensorShape([Dimension(1), Dimension(8), Dimension(8), Dimension(3)])
    """
    inputs = as_input(inputs)
    with layer_scope(scope, "ConvInPlane", inputs, reuse) as opened:
        depth = inputs.shape[3].value
        if depth is None:
            raise ValueError("conv2d_in_plane has to know the number of channels of its inputs")
        kind = inputs.dtype.base_dtype
        weights = model_variable(
            "weights",
            shape=[*numbers(kernel_size, 2, "kernel_size"), 1, 1],
            dtype=kind,
            initializer=weights_initializer,
            regularizer=weights_regularizer,
            trainable=trainable,
        )
        add_variable_to_collections(weights, variables_collections, "weights")
        steps = [1, *numbers(stride, 2, "stride"), 1]
        outputs = depthwise_conv2d(inputs, tile(weights, [1, 1, depth, 1]), steps, padding)
        if normalizer_fn is None and biases_initializer is not None:
            biases = model_variable(
                "biases",
                shape=[depth],
                dtype=kind,
                initializer=biases_initializer,
                regularizer=biases_regularizer,
                trainable=trainable,
            )
            add_variable_to_collections(biases, variables_collections, "biases")
            outputs = bias_add(outputs, biases)
        return finished(
            *(outputs, opened, activation_fn, outputs_collections),
            *(normalizer_fn, normalizer_params),
        )


conv2d_in_plane = convolution2d_in_plane
