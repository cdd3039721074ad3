"""Generalised divisive normalisation, which learned compression of images uses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from runnel.autodiff.custom_gradient import custom_gradient
from runnel.graph.operation import Tensor
from runnel.graph.shapes import TensorShape
from runnel.layers.base import Layer
from runnel.layers.input_spec import InputSpec
from runnel.ops.arithmetic import maximum
from runnel.ops.array_shape import reshape
from runnel.ops.bias import bias_add
from runnel.ops.comparison import greater_equal, logical_or
from runnel.ops.constants import constant
from runnel.ops.convolution.atrous_convolution import convolution
from runnel.ops.elementwise import rsqrt, sqrt, square
from runnel.ops.selection import where_v2


class GDN(Layer):
    """``x / sqrt(beta + gamma @ x**2)`` at each pixel, over channels; ``inverse`` multiplies.

    Ballé et al., *Density Modeling of Images using a Generalized Normalization Transformation*,
    2015.

    Example:
        >>> net = tf.contrib.layers.gdn(tf.layers.conv2d(images, 128, 5, 2))
    """

    def __init__(
        self,
        inverse: bool = False,
        beta_min: float = 1e-6,
        gamma_init: float = 0.1,
        reparam_offset: float = 2**-18,
        data_format: str = "channels_last",
        activity_regularizer: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs
        )
        self.inverse = inverse
        self._beta_min = beta_min
        self._gamma_init = gamma_init
        self._offset = reparam_offset
        self.data_format = data_format
        self.input_spec = InputSpec(min_ndim=3, max_ndim=5)

    def _channel_axis(self) -> int:
        return {"channels_first": 1, "channels_last": -1}[self.data_format]

    def build(self, input_shape: Any) -> None:
        """Makes ``beta`` and ``gamma``: their square roots, which keeps them positive."""
        dims = TensorShape(input_shape)
        count = dims[self._channel_axis()].value
        if count is None:
            raise ValueError("The channel dimension of the inputs to `GDN` must be defined.")
        pedestal = self._offset**2
        begin_beta = np.sqrt(np.ones([count]) + pedestal)
        begin_gamma = np.sqrt(self._gamma_init * np.eye(count) + pedestal)
        beta = self.add_weight(
            "reparam_beta", [count], self.dtype, lambda *_, **__: constant(begin_beta, self.dtype)
        )
        gamma = self.add_weight(
            "reparam_gamma",
            [count, count],
            self.dtype,
            lambda *_, **__: constant(begin_gamma, self.dtype),
        )
        least = math.sqrt(self._beta_min + pedestal)
        self.beta = square(_at_least(beta, least)) - pedestal
        self.gamma = square(_at_least(gamma, self._offset)) - pedestal
        self.built = True

    def call(self, inputs: Tensor) -> Tensor:
        """The normalised inputs."""
        rank = len(inputs.shape) - 2
        first = self.data_format == "channels_first"
        form = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank] if first else None
        count = self.gamma.shape[0].value
        window = reshape(self.gamma, [1] * rank + [count, count])
        pooled = convolution(square(inputs), window, "VALID", data_format=form)
        norm = bias_add(pooled, self.beta, data_format="NCHW" if first else None)
        outputs = inputs * (sqrt(norm) if self.inverse else rsqrt(norm))
        outputs.set_shape(inputs.shape)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The shape stays."""
        return TensorShape(input_shape)


def _at_least(value: Any, bound: float) -> Tensor:
    """``max(value, bound)``, with a gradient also where that raises values below the bound."""

    @custom_gradient
    def bounded(x: Tensor) -> Any:
        def gradient(grad: Tensor) -> Tensor:
            passes = logical_or(greater_equal(x, bound), grad < 0.0)
            return where_v2(passes, grad, 0.0 * grad)

        return maximum(x, bound), gradient

    return bounded(value + 0.0)  # type: ignore[no-any-return]


def gdn(
    inputs: Any,
    inverse: bool = False,
    beta_min: float = 1e-6,
    gamma_init: float = 0.1,
    reparam_offset: float = 2**-18,
    data_format: str = "channels_last",
    activity_regularizer: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """A :class:`GDN` layer that is made and applied at once."""
    layer = GDN(
        inverse,
        beta_min,
        gamma_init,
        reparam_offset,
        data_format,
        activity_regularizer,
        trainable,
        name=name,
        dtype=inputs.dtype.base_dtype,
        _scope=name,
        _reuse=reuse,
    )
    return layer.apply(inputs)
