"""FTRL-Proximal (McMahan et al. 2013): sparse models from L1 regularisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.arithmetic import pow as power
from runnel.ops.clipping import clip_by_value
from runnel.ops.elementwise import sqrt, square
from runnel.train.formula import SlotSpec
from runnel.train.optimizer import Optimizer
from runnel.variables.initializers import Constant


class FtrlOptimizer(Optimizer):
    """Follow the regularised leader, with L1, L2 and shrinkage-type L2.

    ``l2_shrinkage_regularization_strength`` penalises the magnitude of the weights, while
    ``l2_regularization_strength`` steadies the steps; ``beta`` is that of the paper.
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float | None = None,
    ) -> None:
        super().__init__(use_locking, name)
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power} must not be positive")
        for what, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise ValueError(f"{what} {value} must not be negative")
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._beta = beta or 0.0
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _slot_specs(self) -> list[SlotSpec]:
        return [
            ("accum", self._accum_name or self._name, Constant(self._initial_accumulator_value)),
            ("linear", self._linear_name or self._name, None),
        ]

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> tuple[Tensor, ...]:
        rate, l2 = typed(self._learning_rate_tensor), 2 * typed(self._l2_regularization_strength)
        if self._beta:
            l2 = l2 + typed(self._beta) / maximum(rate, typed(1e-36))
        return (
            rate,
            typed(self._l1_regularization_strength),
            l2,
            2 * typed(self._l2_shrinkage_regularization_strength),
            -typed(self._learning_rate_power),
        )

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, l1, l2, shrinkage, exponent = coefficients
        accum, linear = slots

        def root(value: Tensor) -> Tensor:
            return sqrt(value) if self._learning_rate_power == -0.5 else power(value, exponent)

        new_accum = accum + square(grad)
        new_root = root(new_accum)
        shrunk = grad
        if self._l2_shrinkage_regularization_strength > 0:
            shrunk = grad + shrinkage * var
        linear = linear + shrunk - (new_root - root(accum)) / rate * var
        quadratic = new_root / rate + l2
        return (clip_by_value(linear, -l1, l1) - linear) / quadratic, [new_accum, linear]
