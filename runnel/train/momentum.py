"""Gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.operation import Tensor
from runnel.train.formula import SlotSpec
from runnel.train.optimizer import Optimizer


class MomentumOptimizer(Optimizer):
    """accumulation = momentum * accumulation + gradient; var -= learning_rate * accumulation.

    With ``use_nesterov`` the gradient is taken as if at the point the momentum leads to
    (Sutskever et al. 2013).
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _slot_specs(self) -> list[SlotSpec]:
        return [("momentum", self._name, None)]

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        self._momentum_tensor = self._tensor(self._momentum, "momentum")

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> tuple[Tensor, Tensor]:
        return typed(self._learning_rate_tensor), typed(self._momentum_tensor)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, momentum = coefficients
        accumulation = slots[0] * momentum + grad
        if self._use_nesterov:
            step = grad * rate + accumulation * momentum * rate
        else:
            step = accumulation * rate
        return var - step, [accumulation]
