"""AdaDelta (Zeiler 2012): steps in proportion to the size of recent steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.operation import Tensor
from runnel.ops.elementwise import rsqrt, sqrt, square
from runnel.train.formula import SlotSpec
from runnel.train.optimizer import Optimizer


class AdadeltaOptimizer(Optimizer):
    """Scales each gradient by the ratio of recent updates to recent gradients."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon

    def _slot_specs(self) -> list[SlotSpec]:
        return [("accum", self._name, None), ("accum_update", self._name, None)]

    def _prepare(self) -> None:
        self._lr_t = self._tensor(self._lr, "lr")
        self._rho_t = self._tensor(self._rho, "rho")
        self._epsilon_t = self._tensor(self._epsilon, "epsilon")

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> tuple[Tensor, ...]:
        rho = typed(self._rho_t)
        return typed(self._lr_t), rho, 1 - rho, typed(self._epsilon_t)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, rho, rest, epsilon = coefficients
        squares = slots[0] * rho + square(grad) * rest
        update = sqrt(slots[1] + epsilon) * rsqrt(squares + epsilon) * grad
        return var - update * rate, [squares, slots[1] * rho + square(update) * rest]
