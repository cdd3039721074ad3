"""RMSProp (Tieleman and Hinton 2012): gradients divided by their recent magnitude."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.operation import Tensor
from runnel.ops.elementwise import rsqrt, square
from runnel.train.formula import SlotSpec
from runnel.train.optimizer import Optimizer
from runnel.variables.initializers import Ones


class RMSPropOptimizer(Optimizer):
    """The mean square follows gradient**2; the step is the gradient over its root.

    With ``centered`` the variance is used instead of the mean square (Graves 2013).
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered

    def _slot_specs(self) -> list[SlotSpec]:
        mean: list[SlotSpec] = [("mg", self._name, None)] if self._centered else []
        return [("rms", self._name, Ones()), *mean, ("momentum", self._name, None)]

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        self._decay_tensor = self._tensor(self._decay, "decay")
        self._momentum_tensor = self._tensor(self._momentum, "momentum")
        self._epsilon_tensor = self._tensor(self._epsilon, "epsilon")

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> tuple[Tensor, ...]:
        return (
            typed(self._learning_rate_tensor),
            1 - typed(self._decay_tensor),
            typed(self._momentum_tensor),
            typed(self._epsilon_tensor),
        )

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, rest, momentum, epsilon = coefficients
        squares = slots[0] + (square(grad) - slots[0]) * rest
        kept = [squares]
        spread = squares
        if self._centered:
            mean = slots[1] + (grad - slots[1]) * rest
            kept.append(mean)
            spread = squares - square(mean)
        velocity = slots[-1] * momentum + grad * rate * rsqrt(spread + epsilon)
        return var - velocity, [*kept, velocity]
