"""AddSign and PowerSign: steps that grow where a gradient and its average agree in sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.assign import SCATTER_UPDATE
from runnel.ops.elementwise import exp, sign
from runnel.ops.gather import gather
from runnel.train.formula import SlotSpec
from runnel.train.optimizer import Optimizer


class _SignOptimizer(Optimizer):
    """What both have in common (Bello et al. 2017): the average, and a decay of the agreement.

    ``sign_decay_fn`` maps the global step to a factor of the agreement. A sparse gradient decays
    the averages of every row, but moves only its own rows.
    """

    def __init__(
        self,
        learning_rate: Any,
        beta: Any,
        sign_decay_fn: Callable[[Any], Any] | None,
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta = beta
        self._sign_decay_fn = sign_decay_fn
        self._sign_decay: Any = 1.0

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        if self._sign_decay_fn is not None:
            self._sign_decay = self._sign_decay_fn(global_step)
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _slot_specs(self) -> list[SlotSpec]:
        return [("m", self._name, None)]

    def _prepare(self) -> None:
        self._lr_t = self._tensor(self._lr, "learning_rate")
        self._beta_t = self._tensor(self._beta, "beta")
        self._sign_decay_t = self._tensor(self._sign_decay, "sign_decay")

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> tuple[Any, ...]:
        beta = typed(self._beta_t)
        return typed(self._lr_t), beta, 1 - beta, typed(self._sign_decay_t), self._weight(typed)

    def _weight(self, typed: Callable[[Any], Tensor]) -> Tensor:
        raise NotImplementedError

    def _factor(self, agreement: Tensor, weight: Tensor) -> Tensor:
        """The factor of the gradient, by the decayed product of the signs."""
        raise NotImplementedError

    def _step(self, grad: Tensor, mean: Tensor, coefficients: Any) -> Tensor:
        rate, _, _, decay, weight = coefficients
        return rate * self._factor(decay * sign(grad) * sign(mean), weight) * grad

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        _, beta, rest, *_ = coefficients
        mean = slots[0] * beta + grad * rest
        return var - self._step(grad, mean, coefficients), [mean]

    def _apply_rows(self, grad: IndexedSlices, var: Any) -> Operation:
        coefficients = self._coefficients_for(var.dtype.base_dtype)
        _, beta, rest, *_ = coefficients
        (m,) = self._slots_of(var)
        with get_default_graph().control_dependencies([grad.values]):
            rows = gather(self._current(var), grad.indices)
        mean, move = self._decay_and_move(m, beta, grad.values * rest, grad.indices)
        new = rows - self._step(grad.values, mean, coefficients)
        with get_default_graph().control_dependencies([move]):
            return self._scatter(var, SCATTER_UPDATE, grad.indices, new)


class AddSignOptimizer(_SignOptimizer):
    """var -= learning_rate * (alpha + sign(gradient) * sign(average)) * gradient."""

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: Any = 1.0,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._alpha = alpha

    def _weight(self, typed: Callable[[Any], Tensor]) -> Tensor:
        return typed(self._alpha)

    def _factor(self, agreement: Tensor, weight: Tensor) -> Tensor:
        return weight + agreement


class PowerSignOptimizer(_SignOptimizer):
    """var -= learning_rate * base ** (sign(gradient) * sign(average)) * gradient."""

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = math.e,
        beta: Any = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._log_base = math.log(base)

    def _weight(self, typed: Callable[[Any], Tensor]) -> Tensor:
        return typed(self._log_base)

    def _factor(self, agreement: Tensor, weight: Tensor) -> Tensor:
        return exp(weight * agreement)
