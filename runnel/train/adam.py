"""Adam (Kingma and Ba 2015)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control import group
from runnel.ops.elementwise import sqrt, square
from runnel.train.formula import SlotSpec
from runnel.train.optimizer import Optimizer


class AdamOptimizer(Optimizer):
    """Steps by the mean gradient over the root of the mean square, both corrected for bias.

    As in TensorFlow, ``epsilon`` is that of the paper's "epsilon hat" formulation, and a sparse
    gradient decays the moments of every row, so that sparse and dense gradients agree.
    """

    _powers: tuple[str, ...] = ("beta1", "beta2")
    """The decays whose powers are counted."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _slot_specs(self) -> list[SlotSpec]:
        return [("m", self._name, None), ("v", self._name, None)]

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # One pair of powers for the whole optimizer, beside the first variable.
        first = min(var_list, key=lambda v: v.name)
        for name in self._powers:
            beta = self._call_if_callable(getattr(self, f"_{name}"))
            self._create_non_slot_variable(beta, f"{name}_power", first)
        super()._create_slots(var_list)

    def _get_beta_accumulators(self) -> Any:
        return (
            self._get_non_slot_variable("beta1_power"),
            self._get_non_slot_variable("beta2_power"),
        )

    def _prepare(self) -> None:
        self._lr_t = self._tensor(self._lr, "learning_rate")
        self._beta1_t = self._tensor(self._beta1, "beta1")
        self._beta2_t = self._tensor(self._beta2, "beta2")
        self._epsilon_t = self._tensor(self._epsilon, "epsilon")

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> tuple[Any, ...]:
        power1, power2 = (typed(power) for power in self._get_beta_accumulators())
        rate = typed(self._lr_t) * sqrt(1 - power2) / (1 - power1)
        betas = typed(self._beta1_t), typed(self._beta2_t)
        return rate, betas, tuple(1 - beta for beta in betas), typed(self._epsilon_t)

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, _, (rest1, rest2), epsilon = coefficients
        mean = slots[0] + (grad - slots[0]) * rest1
        squares = slots[1] + (square(grad) - slots[1]) * rest2
        return var - mean * rate / (sqrt(squares) + epsilon), [mean, squares]

    def _apply_rows(self, grad: IndexedSlices, var: Any) -> Operation:
        graph = get_default_graph()
        rate, betas, rests, epsilon = self._coefficients_for(var.dtype.base_dtype)
        moments = []
        new_rows = (grad.values, square(grad.values))
        for slot, beta, rest, rows in zip(self._slots_of(var), betas, rests, new_rows, strict=True):
            _, move = self._decay_and_move(slot, beta, rows * rest, grad.indices)
            with graph.control_dependencies([move]):
                moments.append(slot.read_value())
        mean, squares = moments
        step = mean * rate / (sqrt(squares) + epsilon)
        return var.assign_sub(step, use_locking=self._use_locking, read_value=False)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        graph = get_default_graph()
        powers = [self._get_non_slot_variable(f"{name}_power") for name in self._powers]
        betas = [getattr(self, f"_{name}_t") for name in self._powers]
        with graph.control_dependencies(update_ops), graph.colocate_with(powers[0].op):
            advanced = [
                power.assign(power * beta, use_locking=self._use_locking, read_value=False)
                for power, beta in zip(powers, betas, strict=True)
            ]
        return group(*update_ops, *advanced, name=name_scope)
