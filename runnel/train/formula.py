"""An optimizer's formula, applied to whole variables or to some of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.graph import get_default_graph
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.ops.assign import SCATTER_UPDATE, OpPair, update
from runnel.ops.casting import cast
from runnel.ops.gather import gather
from runnel.train.row_totals import row_totals, unique_rows
from runnel.variables.variable import Variable

SlotSpec = tuple[str, str, Any]
"""The name of a slot, the name of its operation, and its initializer (None for zeros)."""


class FormulaRule:
    """The updates of an optimizer that is one formula over a variable, its slots and a gradient.

    A dense gradient applies it to the whole variable, a sparse one to the rows that the
    gradient touches. An optimizer that has no formula has rules of its own.
    """

    _name: str
    _use_locking: bool
    _coefficients_of: dict[DType, Any]

    if TYPE_CHECKING:  # what optimizers have
        get_slot: Callable[[Any, str], Any]
        _zeros_slot: Callable[[Any, str, str], Variable]
        _get_or_make_slot_with_initializer: Callable[..., Variable]
        _call_if_callable: Callable[[Any], Any]

    # What each optimizer says -----------------------------------------------------------------

    def _slot_specs(self) -> list[SlotSpec]:
        """The slots that the formula needs."""
        return []

    def _coefficients(self, typed: Callable[[Any], Tensor]) -> Any:
        """What the formula needs of the hyper-parameters, which ``typed`` casts to one type.

        It is made once for all variables of that type.
        """

    def _formula(
        self, grad: Tensor, var: Tensor, slots: list[Tensor], coefficients: Any
    ) -> tuple[Tensor, list[Tensor]]:
        """The new values of the variable and of its slots."""
        raise NotImplementedError

    def _require_formula(self, kind: str) -> None:
        if type(self)._formula is FormulaRule._formula:
            raise NotImplementedError(f"{type(self).__name__} has no rule for {kind} gradients")

    # How it is applied ------------------------------------------------------------------------

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Makes the slots of the variables."""
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
        """Makes what updates of variables of these types have in common."""
        self._coefficients_of = {}
        for dtype in sorted(types, key=lambda t: t.name):
            self._coefficients_for(dtype)

    def _coefficients_for(self, dtype: DType) -> Any:
        if dtype not in self._coefficients_of:
            self._coefficients_of[dtype] = self._coefficients(
                lambda value: cast(convert_to_tensor(value), dtype)
            )
        return self._coefficients_of[dtype]

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        """Adds the update of ``var`` by a dense gradient."""
        self._require_formula("dense")
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

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        """The same for a resource variable."""
        return self._apply_dense(grad, handle)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        """Adds the update by a sparse gradient in which each index stands once."""
        self._require_formula("sparse")
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
    # of a formula stays whole.

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """The same for a resource variable."""
        return self._apply_sparse(IndexedSlices(grad, indices), handle)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        """Adds the update by a sparse gradient in which an index may stand several times."""
        if type(self)._apply_sparse is not FormulaRule._apply_sparse:
            return self._apply_sparse(unique_rows(grad), var)
        self._require_formula("sparse")
        return self._apply_rows(row_totals(grad), var)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: Any, indices: Tensor
    ) -> Any:
        """The same for a resource variable."""
        slices = IndexedSlices(grad, indices)
        if type(self)._resource_apply_sparse is not FormulaRule._resource_apply_sparse:
            totals = unique_rows(slices)
            return self._resource_apply_sparse(totals.values, handle, totals.indices)
        return self._apply_sparse_duplicate_indices(slices, handle)
