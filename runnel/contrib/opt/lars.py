"""LARS: a learning rate for each layer, for large batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.operation import Operation, Tensor
from runnel.ops.casting import cast
from runnel.ops.comparison import greater, logical_and
from runnel.ops.fill import ones_like
from runnel.ops.norms import norm
from runnel.ops.selection import where
from runnel.train.momentum import MomentumOptimizer


class LARSOptimizer(MomentumOptimizer):
    """Momentum whose learning rate is scaled by the norm of the weights over the gradient's.

    You et al. 2017: the factor is ``eeta * |w| / (|g| + weight_decay * |w| + epsilon)``, and
    ``weight_decay * w`` is added to the gradient. Neither is done for variables with one of
    ``skip_list`` in their name, such as biases, nor for sparse gradients.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        for what, value in (("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0.0:
                raise ValueError(f"{what} should be positive: {value}")
        super().__init__(learning_rate, momentum, name=name, use_nesterov=use_nesterov)
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = skip_list

    def compute_lr(self, grad: Tensor, var: Any) -> tuple[Tensor, Tensor]:
        """The learning rate of ``var``, and its gradient with weight decay."""
        rate, _ = self._coefficients_for(var.dtype.base_dtype)
        if any(part in var.name for part in self._skip_list or ()):
            return rate, grad
        value = convert_to_tensor(self._current(var))
        size, slope = norm(value, ord=2), norm(grad, ord=2)
        factor = self._eeta * size / (slope + self._weight_decay * size + self._epsilon)
        usable = logical_and(greater(size, 0), greater(slope, 0))
        return rate * where(usable, factor, ones_like(factor)), grad + self._weight_decay * value

    def _apply_dense(self, grad: Tensor, var: Any) -> Operation:
        dtype = var.dtype.base_dtype
        rate, grad = self.compute_lr(grad, var)
        _, momentum = self._coefficients_for(dtype)
        # The rate is part of what is accumulated, unlike in plain momentum.
        return self._apply_whole(grad * rate, var, (cast(1.0, dtype), momentum))
