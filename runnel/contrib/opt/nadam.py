"""Nadam: Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.assign import SCATTER_UPDATE
from runnel.ops.elementwise import sqrt, square
from runnel.ops.gather import gather
from runnel.train.adam import AdamOptimizer


class NadamOptimizer(AdamOptimizer):
    """Nadam (Dozat 2015), without its schedule of the momentum, as TensorFlow has it.

    A sparse gradient decays the moments of every row, but moves only its own rows.
    """

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        rate, (beta1, _), (rest1, rest2), epsilon = coefficients
        mean = slots[0] + (grad - slots[0]) * rest1
        squares = slots[1] + (square(grad) - slots[1]) * rest2
        ahead = grad * rest1 + beta1 * mean
        return var - ahead * rate / (sqrt(squares) + epsilon), [mean, squares]

    def _apply_rows(self, grad: IndexedSlices, var: Any) -> Operation:
        rate, betas, (rest1, rest2), epsilon = self._coefficients_for(var.dtype.base_dtype)
        values, indices = grad.values, grad.indices
        m, v = self._slots_of(var)
        with get_default_graph().control_dependencies([values]):
            rows = gather(self._current(var), indices)
        mean, move_m = self._decay_and_move(m, betas[0], values * rest1, indices)
        squares, move_v = self._decay_and_move(v, betas[1], square(values) * rest2, indices)
        ahead = values * rest1 + betas[0] * mean
        new = rows - ahead * rate / (sqrt(squares) + epsilon)
        with get_default_graph().control_dependencies([move_m, move_v]):
            return self._scatter(var, SCATTER_UPDATE, indices, new)
