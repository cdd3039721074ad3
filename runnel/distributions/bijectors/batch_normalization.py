"""Batch normalisation as a bijector."""

from __future__ import annotations

from typing import Any

from runnel.distributions.bijectors.bijector import Bijector
from runnel.graph.operation import Tensor
from runnel.layers.regularizing import BatchNormalization as Layer
from runnel.ops.activations import relu
from runnel.ops.elementwise import log, sqrt
from runnel.ops.moments import moments
from runnel.ops.reduce_functions import reduce_sum


class BatchNormalization(Bijector):
    """The inverse normalises a batch, which trains density estimators; see RealNVP, section 3.7.

    ``forward`` undoes what the moving averages do, so it needs ``training=False``.
    """

    def __init__(
        self,
        batchnorm_layer: Any = None,
        training: bool = True,
        validate_args: bool = False,
        name: str = "batch_normalization",
    ) -> None:
        super().__init__(validate_args=validate_args, forward_min_event_ndims=1, name=name)
        if batchnorm_layer is None:
            batchnorm_layer = Layer(gamma_constraint=lambda x: relu(x) + 1e-6)
        self.batchnorm = batchnorm_layer
        self._training = training

    def _axes(self, rank: int) -> list[int]:
        axis = self.batchnorm.axis
        kept = [axis] if isinstance(axis, int) else list(axis)
        return [i for i in range(rank) if i not in {a % rank for a in kept}]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.batchnorm.apply(y, training=self._training)

    def _forward(self, x: Tensor) -> Tensor:
        layer = self.batchnorm
        if self._training:
            raise ValueError("Unable to de-normalize in training mode")
        if not layer.built:
            layer.build(x.shape)
        y = x if layer.beta is None else x - layer.beta
        y = y if layer.gamma is None else y / layer.gamma
        return y * sqrt(layer.moving_variance + layer.epsilon) + layer.moving_mean

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        layer = self.batchnorm
        if not layer.built:
            layer.build(y.shape)
        variance = layer.moving_variance
        if self._training:
            _, variance = moments(y, self._axes(len(y.shape)))
        whole = -0.5 * reduce_sum(log(variance + layer.epsilon))
        return whole if layer.gamma is None else whole + reduce_sum(log(layer.gamma))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -self._inverse_log_det_jacobian(x)
