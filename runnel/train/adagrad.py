"""AdaGrad and its relatives: learning rates that shrink with the gradients seen so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.control import identity
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import rsqrt, sign, sqrt, square
from runnel.train.formula import SlotSpec
from runnel.train.optimizer import Optimizer
from runnel.train.soft_threshold import soft_threshold
from runnel.variables.initializers import Constant


class AdagradOptimizer(Optimizer):
    """accumulator += gradient**2; var -= learning_rate * gradient / sqrt(accumulator).

    Duchi, Hazan and Singer 2011.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator = _positive(initial_accumulator_value)

    def _slot_specs(self) -> list[SlotSpec]:
        return [("accumulator", self._name, self._initial_accumulator)]

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> Any:
        return typed(self._learning_rate_tensor)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        accumulator = slots[0] + square(grad)
        return var - coefficients * grad * rsqrt(accumulator), [accumulator]


def _positive(initial_accumulator_value: float) -> Constant:
    """What accumulators begin with."""
    if initial_accumulator_value <= 0.0:
        raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
    return Constant(initial_accumulator_value)


class ProximalAdagradOptimizer(Optimizer):
    """AdaGrad followed by the proximal operator of L1 and L2 regularisation."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator = _positive(initial_accumulator_value)
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _slot_specs(self) -> list[SlotSpec]:
        return [("accumulator", self._name, self._initial_accumulator)]

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        self._l1_regularization_strength_tensor = self._tensor(
            self._l1_regularization_strength, "l1_regularization_strength"
        )
        self._l2_regularization_strength_tensor = self._tensor(
            self._l2_regularization_strength, "l2_regularization_strength"
        )

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        return (
            typed(self._learning_rate_tensor),
            typed(self._l1_regularization_strength_tensor),
            typed(self._l2_regularization_strength_tensor),
        )

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        learning_rate, l1, l2 = coefficients
        accumulator = slots[0] + square(grad)
        rate = learning_rate * rsqrt(accumulator)
        return soft_threshold(var - grad * rate, rate, l1, l2), [accumulator]


class AdagradDAOptimizer(Optimizer):
    """AdaGrad with dual averaging: each value is computed anew from sums of gradients.

    ``global_step`` says how many gradients there have been; pass it to ``minimize`` too, which
    counts it up.
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._global_step = global_step
        self._initial_gradient_squared_accumulator_value = (
            initial_gradient_squared_accumulator_value
        )
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _slot_specs(self) -> list[SlotSpec]:
        squares = Constant(self._initial_gradient_squared_accumulator_value)
        return [
            ("gradient_accumulator", self._name, None),
            ("gradient_squared_accumulator", self._name, squares),
        ]

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")
        # The step that is being taken counts.
        self._global_step_on_worker = identity(self._global_step) + 1

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        rate, step = typed(self._learning_rate_tensor), typed(self._global_step_on_worker)
        l1, l2 = self._l1_regularization_strength, self._l2_regularization_strength
        return rate, typed(l1) * step, typed(l2) * step * rate

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, threshold, damping = coefficients
        total, squares = slots[0] + grad, slots[1] + square(grad)
        beyond = sign(total) * maximum(absolute(total) - threshold, 0)
        return -rate * beyond / (damping + sqrt(squares)), [total, squares]
