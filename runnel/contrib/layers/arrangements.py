"""Layers without variables of a layer's own: dropout, flattening, and layers in a row."""

from __future__ import annotations

from typing import Any

from runnel.contrib.framework.arg_scope import add_arg_scope
from runnel.contrib.framework.variables import model_variable
from runnel.contrib.layers.scoping import (
    add_variable_to_collections,
    as_input,
    channels,
    collect_named_outputs,
    finished,
    layer_scope,
)
from runnel.graph.dtypes import int64
from runnel.graph.graph import name_scope
from runnel.layers.regularizing import Dropout, Flatten
from runnel.ops.array_shape import reshape, shape
from runnel.ops.bias import bias_add as add_bias
from runnel.ops.casting import cast
from runnel.ops.elementwise import sqrt, square
from runnel.ops.one_hot import one_hot
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.softmax import softmax as softmax_of
from runnel.variables.initializers import Zeros
from runnel.variables.variable_scope import variable_scope


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Any:
    """Keeps elements with the probability ``keep_prob`` in training, scaled up; zero else."""
    with variable_scope(scope, "Dropout", [inputs]) as opened:
        layer = Dropout(1 - keep_prob, noise_shape, seed=seed, name=opened.name, _scope=opened)
        outputs = layer(as_input(inputs), training=is_training)
        return finished(outputs, opened, None, outputs_collections)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """Each sample as one row.

    Example:
        >>> tf.contrib.layers.flatten(net)
    """
    with name_scope(scope, "Flatten", [inputs]) as opened:
        with name_scope("flatten"):
            outputs = Flatten().call(as_input(inputs))
        return collect_named_outputs(outputs_collections, opened, outputs)


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """Integers as rows that have ``on_value`` at their place."""
    with name_scope(scope, "OneHotEncoding", [labels]) as opened:
        outputs = one_hot(cast(labels, int64), num_classes, on_value=on_value, off_value=off_value)
        return collect_named_outputs(outputs_collections, opened, outputs)


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Any:
    """The softmax over the last axis of a tensor of any rank."""
    with variable_scope(scope, "softmax", [logits]):
        given = as_input(logits)
        rows = softmax_of(reshape(given, [-1, given.shape[-1].value or shape(given)[-1]]))
        outputs = reshape(rows, shape(given))
        outputs.set_shape(given.shape)
        return outputs


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """``inputs`` scaled to the length 1 along an axis."""
    with variable_scope(scope, "UnitNorm", [inputs]):
        given = as_input(inputs)
        return given / sqrt(epsilon + reduce_sum(square(given), dim, keepdims=True))


@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Any = None,
    initializer: Any = Zeros,
    regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Adds a number to each channel, then activates."""
    given = as_input(inputs)
    with layer_scope(scope, "BiasAdd", given, reuse) as opened:
        axis = 1 if channels(data_format) == "channels_first" else len(given.shape) - 1
        biases = model_variable(
            "biases",
            shape=[given.shape[axis].value],
            dtype=given.dtype.base_dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        add_variable_to_collections(biases, variables_collections, "biases")
        outputs = add_bias(given, biases, data_format=data_format)
        return finished(outputs, opened, activation_fn, outputs_collections)


def repeat(inputs: Any, repetitions: int, layer: Any, *args: Any, **kwargs: Any) -> Any:
    """The same layer, with the same arguments, several times in a row.

    Example:
        >>> slim.repeat(net, 3, slim.conv2d, 256, [3, 3], scope="conv3")  # conv3/conv3_1, ...
    """
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        scope = scope or getattr(layer, "__name__", None) or layer.func.__name__
        outputs = as_input(inputs)
        for number in range(1, repetitions + 1):
            outputs = layer(outputs, *args, **{**kwargs, "scope": f"{scope}_{number}"})
        return outputs


def stack(inputs: Any, layer: Any, stack_args: Any, **kwargs: Any) -> Any:
    """A layer for each of ``stack_args``, one after the other.

    Example:
        >>> slim.stack(net, slim.fully_connected, [32, 64, 128], scope="fc")
    """
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Stack", [inputs]):
        scope = scope or getattr(layer, "__name__", None) or layer.func.__name__
        outputs = as_input(inputs)
        for number, arguments in enumerate(stack_args, 1):
            given = arguments if isinstance(arguments, list | tuple) else [arguments]
            outputs = layer(outputs, *given, **{**kwargs, "scope": f"{scope}_{number}"})
        return outputs
