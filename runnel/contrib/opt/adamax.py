"""AdaMax: Adam with the largest gradient in place of the root of their mean square."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.elementwise import abs as absolute
from runnel.train.adam import AdamOptimizer
from runnel.train.optimizer import Optimizer


class AdaMaxOptimizer(AdamOptimizer):
    """AdaMax (Kingma and Ba 2015, section 7.1); a sparse gradient touches only its own rows."""

    _powers = ("beta1",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power")

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> tuple[Any, ...]:
        rate = typed(self._lr_t) / (1 - typed(self._get_beta_accumulators()))
        return rate, 1 - typed(self._beta1_t), typed(self._beta2_t), typed(self._epsilon_t)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, rest1, beta2, epsilon = coefficients
        mean = slots[0] + (grad - slots[0]) * rest1
        largest = maximum(slots[1] * beta2, absolute(grad))
        return var - rate * (mean / (largest + epsilon)), [mean, largest]

    def _apply_rows(self, grad: IndexedSlices, var: Any) -> Operation:
        return Optimizer._apply_rows(self, grad, var)
