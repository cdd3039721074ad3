"""``tf.layers.Dense``: every output is connected to every input."""

from __future__ import annotations

from typing import Any

from runnel.graph.dtypes import float32
from runnel.graph.shapes import TensorShape, as_dims, as_shape
from runnel.layers.base import Layer
from runnel.layers.by_name import as_activation, as_initializer
from runnel.layers.input_spec import InputSpec
from runnel.ops.bias import bias_add
from runnel.ops.casting import cast
from runnel.ops.matmul import matmul
from runnel.ops.tensordot import tensordot
from runnel.variables.initializers import Zeros


class Dense(Layer):
    """``activation(inputs @ kernel + bias)``, over the last axis of the inputs.

    Example:
        >>> layer = tf.layers.Dense(4, activation=tf.nn.relu)
        >>> layer(tf.ones([2, 3])).shape
        TensorShape([Dimension(2), Dimension(4)])
        >>> [v.name for v in layer.variables]
        ['dense/kernel:0', 'dense/bias:0']
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = Zeros,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs
        )
        self.units = int(units)
        self.activation = as_activation(activation)
        self.use_bias = use_bias
        self.kernel_initializer = as_initializer(kernel_initializer)
        self.bias_initializer = as_initializer(bias_initializer)
        self.kernel_regularizer = kernel_regularizer
        self.bias_regularizer = bias_regularizer
        self.kernel_constraint = kernel_constraint
        self.bias_constraint = bias_constraint
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        dtype = self.dtype or float32
        if not (dtype.is_floating or dtype.is_complex):
            raise TypeError(
                f"A Dense layer needs floating-point inputs, not {dtype.name}; tf.cast makes them"
            )
        dims = as_dims(input_shape)
        depth = dims[-1] if dims else None
        if depth is None:
            raise ValueError(
                "The last dimension of the inputs to a Dense layer must be known, but the inputs "
                f"have shape {as_shape(input_shape)}"
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: depth})
        self.kernel = self.add_weight(
            "kernel",
            shape=[depth, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                shape=[self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        assert self.dtype is not None
        inputs = cast(inputs, self.dtype)
        if len(inputs.dims) > 2:
            outputs = tensordot(inputs, self.kernel, [[len(inputs.dims) - 1], [0]])
            outputs.set_shape((*inputs.dims[:-1], self.units))
        else:
            outputs = matmul(inputs, self.kernel)
        if self.use_bias:
            outputs = bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        shape = as_shape(input_shape).with_rank_at_least(2)
        if shape[-1].value is None:
            raise ValueError(
                f"The innermost dimension of input_shape must be defined, but saw: {shape}"
            )
        return shape[:-1].concatenate(self.units)


def dense(
    inputs: Any,
    units: int,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = Zeros,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
) -> Any:
    """A :class:`Dense` layer that is made and applied at once.

    With a ``name`` and ``reuse=True`` the variables of an earlier layer of that name are shared.

    Example:
        >>> tf.layers.dense(tf.ones([2, 3]), 4, name="hidden").op.name
        'hidden/BiasAdd'
    """
    layer = Dense(
        units,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _scope=name,
        _reuse=reuse,
    )
    return layer(inputs)
