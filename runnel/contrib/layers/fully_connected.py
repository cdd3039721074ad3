"""``tf.contrib.layers.fully_connected``, and its forms with an activation of their own."""

from __future__ import annotations

from functools import partial
from typing import Any

from runnel.contrib.framework.arg_scope import add_arg_scope
from runnel.contrib.layers.initializers import xavier_initializer
from runnel.contrib.layers.scoping import (
    add_variable_to_collections,
    as_input,
    finished,
    layer_scope,
)
from runnel.layers.fully_connected import Dense
from runnel.ops.activations import elu as elu_of
from runnel.ops.activations import relu as relu_of
from runnel.ops.activations import relu6 as relu6_of
from runnel.variables.initializers import Zeros


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = relu_of,
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
    """Connects every output to every input along the last axis; normalised, then activated.

    With a ``normalizer_fn`` there are no biases. The variables are ``weights`` and ``biases``.

    Example:
        >>> tf.contrib.layers.fully_connected(images, 256, scope="hidden")
    """
    inputs = as_input(inputs)
    names = {"kernel": "weights", "bias": "biases"}
    with layer_scope(scope, "fully_connected", inputs, reuse, names) as opened:
        layer = Dense(
            units=num_outputs,
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


relu = partial(fully_connected, activation_fn=relu_of)
relu6 = partial(fully_connected, activation_fn=relu6_of)
elu = partial(fully_connected, activation_fn=elu_of)
linear = partial(fully_connected, activation_fn=None)
