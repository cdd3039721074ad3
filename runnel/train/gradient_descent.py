"""Gradient descent, with and without proximal regularisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.assign import SCATTER_SUB
from runnel.train.optimizer import Optimizer
from runnel.train.soft_threshold import soft_threshold


class GradientDescentOptimizer(Optimizer):
    """var -= learning_rate * gradient."""

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._tensor(self._learning_rate, "learning_rate")

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> Tensor:
        return typed(self._learning_rate_tensor)

    def _apply_dense(self, grad: Tensor, var: Any) -> Operation:
        step = grad * self._coefficients_for(var.dtype.base_dtype)
        return var.assign_sub(step, use_locking=self._use_locking, read_value=False)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Operation:
        # Subtracting is linear: rows with the same index add up by themselves.
        step = grad.values * self._coefficients_for(var.dtype.base_dtype)
        return self._scatter(var, SCATTER_SUB, grad.indices, step)


class ProximalGradientDescentOptimizer(Optimizer):
    """A gradient step followed by the proximal operator of L1 and L2 regularisation.

    Duchi and Singer 2009, "Efficient Learning using Forward-Backward Splitting".
    """

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

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
        rate, l1, l2 = coefficients
        return soft_threshold(var - rate * grad, rate, l1, l2), []
