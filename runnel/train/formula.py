"""Optimizers that are one formula, applied to whole variables or to some of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.assign import SCATTER_UPDATE, OpPair, update
from runnel.ops.casting import cast
from runnel.ops.gather import gather
from runnel.train.optimizer import Optimizer
from runnel.train.row_totals import row_totals
from runnel.variables.variable import Variable

SlotSpec = tuple[str, str, Any]
"""The name of a slot, the name of its operation, and its initializer (None for zeros)."""


class FormulaOptimizer(Optimizer):
    """An optimizer that is one formula over a variable, its slots and a gradient.

    A dense gradient applies it to the whole variable, a sparse one to the rows that the
    gradient touches.
    """

    def __init__(self, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._coefficients_of: dict[DType, Any] = {}

    # What each optimizer says -----------------------------------------------------------------

    def _slot_specs(self) -> list[SlotSpec]:
        """The slots that the formula needs."""
        return []

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> Any:
        """What the formula needs of the hyper-parameters, which ``typed`` casts to one type.

        It is made once for all variables of that type.
        """
        raise NotImplementedError

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """The new values of the variable and of its slots."""
        raise NotImplementedError

    # How it is applied ------------------------------------------------------------------------

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            for slot_name, op_name, initializer in self._slot_specs():
                if initializer is None:
                    self._zeros_slot(var, slot_name, op_name)
                else:
                    dtype = var.dtype.base_dtype
                    self._get_or_make_slot_with_initializer(
                        var, initializer, var.get_shape(), dtype, slot_name, op_name
                    )

    def _slots_of(self, var: Any) -> list[Variable]:
        found = [self.get_slot(var, slot_name) for slot_name, _, _ in self._slot_specs()]
        if any(slot is None for slot in found):
            raise ValueError(f"{self._name} has no slots for {var.name}: _create_slots makes them")
        return found

    def _tensor(self, value: Any, name: str) -> Tensor:
        """A hyper-parameter as a tensor; one that is a function is called."""
        return convert_to_tensor(self._call_if_callable(value), name=name)

    def _prepare_types(self, types: set[DType]) -> None:
        self._coefficients_of = {}
        for dtype in sorted(types, key=lambda t: t.name):
            self._coefficients_for(dtype)

    def _coefficients_for(self, dtype: DType) -> Any:
        if dtype not in self._coefficients_of:
            self._coefficients_of[dtype] = self._coefficients(
                lambda value: cast(convert_to_tensor(value), dtype)
            )
        return self._coefficients_of[dtype]

    def _apply_dense(self, grad: Tensor, var: Any) -> Operation:
        return self._apply_whole(grad, var, self._coefficients_for(var.dtype.base_dtype))

    def _apply_whole(self, grad: Tensor, var: Any, coefficients: Any) -> Operation:
        """The update by a dense gradient."""
        slots = self._slots_of(var)
        old = convert_to_tensor(self._current(var))
        new, new_slots = self._formula(grad, old, [s.value() for s in slots], coefficients)
        graph = get_default_graph()
        # Our own order is that of construction, but TensorFlow, running an exported graph, must
        # be told not to change a slot that the formula has still to read.
        with graph.control_dependencies([new]):
            kept = [
                slot.assign(value, use_locking=self._use_locking, read_value=False)
                for slot, value in zip(slots, new_slots, strict=True)
            ]
        # The variable's own assignment comes last and so stands for all of them.
        with graph.control_dependencies(kept):
            return var.assign(new, use_locking=self._use_locking, read_value=False)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Operation:
        return self._apply_rows(grad, var)

    def _apply_rows(self, grad: IndexedSlices, var: Any) -> Operation:
        """The update by a sparse gradient; rows with the same index are equal (their total)."""
        slots = self._slots_of(var)
        indices = grad.indices
        coefficients = self._coefficients_for(var.dtype.base_dtype)
        # When there is a gradient: rows that were looked up before could be out of date.
        with get_default_graph().control_dependencies([grad.values]):
            rows, *slot_rows = [gather(v, indices) for v in (self._current(var), *slots)]
        new, new_slots = self._formula(grad.values, rows, slot_rows, coefficients)
        kept = [
            self._scatter(slot, SCATTER_UPDATE, indices, value)
            for slot, value in zip(slots, new_slots, strict=True)
        ]
        with get_default_graph().control_dependencies(kept):
            return self._scatter(var, SCATTER_UPDATE, indices, new)

    def _current(self, var: Any) -> Any:
        """What the formula takes for the variable: itself, or another tensor with its value."""
        return var

    def _decay_and_move(
        self, slot: Variable, decay: Tensor, rows: Tensor, indices: Tensor
    ) -> tuple[Tensor, Operation]:
        """Multiplies a whole slot by ``decay`` and adds ``rows``; returns its new rows, and how."""
        decayed = slot.value() * decay
        moved = gather(decayed, indices) + rows
        whole = slot.assign(decayed, use_locking=self._use_locking, read_value=False)
        with get_default_graph().control_dependencies([whole]):
            return moved, self._scatter(slot, SCATTER_UPDATE, indices, moved)

    def _scatter(self, var: Any, how: OpPair, indices: Tensor, rows: Tensor) -> Operation:
        locking = {"use_locking": self._use_locking}
        return update(var, how, indices, rows, for_ref=locking, read_value=False)

    # A subclass that has its own rule for sparse gradients expects each index to stand once,
    # which takes ``tf.unique`` on the host. Setting rows does not mind equal ones, so the step
    # stays whole.

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        if type(self)._apply_sparse is not FormulaOptimizer._apply_sparse:
            return super()._apply_sparse_duplicate_indices(grad, var)
        return self._apply_rows(row_totals(grad), var)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: Any, indices: Tensor
    ) -> Any:
        if type(self)._resource_apply_sparse is not Optimizer._resource_apply_sparse:
            return super()._resource_apply_sparse_duplicate_indices(grad, handle, indices)
        return self._apply_sparse_duplicate_indices(IndexedSlices(grad, indices), handle)
