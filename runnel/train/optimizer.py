"""The base of all optimizers: gradients in, update operations out.

An optimizer is graph code: its slots are variables, its updates are assignments. See
``formula.py`` for the rules that are formulas over a variable, its slots and a gradient.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runnel.autodiff.gradients import gradients
from runnel.graph import dtypes
from runnel.graph.collection_pause import collection_paused
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.graph import Graph, get_default_graph, name_scope
from runnel.graph.indexed_slices import IndexedSlices
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import compatible_dims, format_dims
from runnel.ops.assign import ASSIGN_ADD, update
from runnel.ops.control import group
from runnel.ops.control import tuple as gate
from runnel.train.formula import FormulaRule
from runnel.train.slots import (
    create_slot,
    create_slot_with_initializer,
    create_zeros_slot,
    is_resource,
)
from runnel.variables.initialization import trainable_variables
from runnel.variables.variable import Variable


class Optimizer(FormulaRule):
    """Computes gradients of a loss and applies them to variables.

    Subclasses override ``_apply_dense`` and ``_apply_sparse`` (and, as needed, ``_prepare``,
    ``_create_slots`` and ``_finish``). These serve resource variables too, unless
    ``_resource_apply_dense`` or ``_resource_apply_sparse`` is overridden. runnel's own have a
    ``_formula`` for both instead.

    Example:
        >>> step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        >>> sess.run(step, feed_dict={x: batch})
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._coefficients_of = {}
        # A slot belongs to the variable's operation, whichever Python object denotes it.
        self._slots: dict[str, dict[Operation, Variable]] = {}
        self._non_slot_dict: dict[tuple[str, Graph], Variable] = {}

    def get_name(self) -> str:
        return self._name

    # The public steps -------------------------------------------------------------------------

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """An operation that takes one step against the gradient of ``loss``.

        ``var_list`` defaults to the trainable variables; ``global_step`` is counted up.
        """
        pairs = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(grad is None for grad, _ in pairs):
            names = ", ".join(variable.name for _, variable in pairs)
            raise ValueError(
                f"No gradients provided for any variable: the loss {getattr(loss, 'name', loss)} "
                "does not depend on any of them, or every path is cut (by tf.stop_gradient, a "
                f"cast to an integer or an op without a gradient). Variables: {names}."
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Pairs of (gradient, variable); the gradient is None where the loss does not depend.

        ``gate_gradients`` guards against updates that overtake reads; a step's order is defined
        here, and told to TensorFlow when a graph is exported, so only GATE_GRAPH (all gradients
        before any is used) adds operations.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH.  Not {gate_gradients}"
            )
        tensor = convert_to_tensor(loss() if callable(loss) else loss)
        self._assert_valid_dtypes([tensor])
        if grad_loss is not None:
            grad_loss = convert_to_tensor(grad_loss, tensor.dtype.base_dtype)
        if var_list is None:
            resources = get_default_graph().get_collection(GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
            var_list = trainable_variables() + resources
        variables = flatten_variables(var_list)
        if not variables:
            raise ValueError("No variables to optimize: create a trainable tf.Variable first.")
        grads = gradients(
            tensor,
            variables,
            grad_ys=grad_loss,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == self.GATE_GRAPH and any(grad is not None for grad in grads):
            grads = gate(grads)
        pairs = list(zip(grads, variables, strict=True))
        self._assert_valid_dtypes([variable for grad, variable in pairs if grad is not None])
        return pairs

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        """An operation that updates the variables by their gradients.

        ``grads_and_vars`` are pairs as ``compute_gradients`` returns them; those whose gradient
        is None are left out. ``global_step`` is counted up when all variables are updated.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        usable = [(_checked(g, v), v) for g, v in pairs if g is not None]
        if not usable:
            names = [str(variable) for _, variable in pairs]
            raise ValueError(f"No gradients provided for any variable: {names}.")
        graph = get_default_graph()
        with collection_paused(), graph.control_dependencies(None):
            self._create_slots([v for _, v in usable])
        with (
            collection_paused(),
            graph.one_creation_site(),
            name_scope(name, self._name) as scope,
        ):
            self._prepare()
            self._prepare_types({v.dtype.base_dtype for _, v in usable})
            updates = []
            for grad, variable in usable:
                with name_scope(f"update_{variable.op.name}"), graph.colocate_with(variable.op):
                    updates.append(self._update(grad, variable))
            if global_step is None:
                train_op = self._finish(updates, scope)
            else:
                done = self._finish(updates, "update")
                with graph.control_dependencies([done]), graph.colocate_with(global_step.op):
                    train_op = update(global_step, ASSIGN_ADD, 1, name=scope, read_value=False)
            train_op = train_op.op if isinstance(train_op, Tensor) else train_op
            members = graph.get_collection_ref(GraphKeys.TRAIN_OP)
            if train_op not in members:
                members.append(train_op)
            return train_op

    def _update(self, grad: Any, variable: Any) -> Any:
        resource = is_resource(variable)
        if isinstance(grad, IndexedSlices):
            if variable.constraint is not None:
                raise RuntimeError(
                    f"Cannot use a constraint function on a sparse variable: {variable.name} has "
                    "one, but its gradient is sparse. tf.convert_to_tensor makes it dense."
                )
            if not resource:
                return self._apply_sparse_duplicate_indices(grad, variable)
            return self._resource_apply_sparse_duplicate_indices(
                grad.values, variable, grad.indices
            )
        apply_dense = self._resource_apply_dense if resource else self._apply_dense
        updated = apply_dense(grad, variable)
        if variable.constraint is None:
            return updated
        with get_default_graph().control_dependencies([updated]):
            return variable.assign(variable.constraint(variable.read_value()), read_value=False)

    def _assert_valid_dtypes(self, values: Iterable[Any]) -> None:
        valid = self._valid_dtypes()
        for value in values:
            if value.dtype.base_dtype not in valid:
                names = ", ".join(sorted(dtype.name for dtype in valid))
                raise ValueError(
                    f"Invalid type {value.dtype.base_dtype.name} for {value.name}, expected one "
                    f"of: {names}."
                )

    # Slots ------------------------------------------------------------------------------------

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot ``name`` that belongs to ``var``, or None."""
        return self._slots.get(name, {}).get(var.op)

    def get_slot_names(self) -> list[str]:
        """The names of this optimizer's slots."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """Every variable that this optimizer has made in the default graph."""
        made = list(self._non_slot_dict.values())
        made += [slot for slots in self._slots.values() for slot in slots.values()]
        graph = get_default_graph()
        return sorted((v for v in made if v.graph is graph), key=lambda v: v.name)

    def _slot_dict(self, slot_name: str) -> dict[Operation, Variable]:
        return self._slots.setdefault(slot_name, {})

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Variable:
        slots = self._slot_dict(slot_name)
        if var.op not in slots:
            slots[var.op] = create_zeros_slot(var, op_name)
        return slots[var.op]

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Variable:
        slots = self._slot_dict(slot_name)
        if var.op not in slots:
            slots[var.op] = create_slot(var, val, op_name)
        return slots[var.op]

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Variable:
        slots = self._slot_dict(slot_name)
        if var.op not in slots:
            slots[var.op] = create_slot_with_initializer(var, initializer, shape, dtype, op_name)
        return slots[var.op]

    def _create_non_slot_variable(
        self, initial_value: Any, name: str, colocate_with: Any
    ) -> Variable:
        graph = colocate_with.graph
        key = (name, graph)
        if key not in self._non_slot_dict:
            with graph.colocate_with(colocate_with.op):
                self._non_slot_dict[key] = Variable(
                    initial_value,
                    name=name,
                    trainable=False,
                    use_resource=is_resource(colocate_with),
                )
        return self._non_slot_dict[key]

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Any:
        return self._non_slot_dict.get((name, graph or get_default_graph()))

    def _non_slot_variables(self) -> list[Variable]:
        return list(self._non_slot_dict.values())

    # What subclasses override -----------------------------------------------------------------

    def _valid_dtypes(self) -> set[DType]:
        """The types that a loss and variables may have."""
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _prepare(self) -> None:
        """Makes tensors of hyper-parameters, before any update is added."""

    def _finish(self, update_ops: list[Any], name_scope: str) -> Operation:
        """Adds what follows the updates; returns the operation that stands for all of it."""
        return group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param


def flatten_variables(var_list: Any) -> list[Any]:
    """The variables in nested lists, with the parts of partitioned ones in their place."""
    if isinstance(var_list, list | tuple):
        return [v for item in var_list for v in flatten_variables(item)]
    if isinstance(var_list, dict):
        return [v for key in sorted(var_list) for v in flatten_variables(var_list[key])]
    parts = getattr(var_list, "_get_variable_list", None)
    if parts is not None:
        return list(parts())
    if not isinstance(var_list, Variable | Tensor):
        raise TypeError(f"{var_list!r} cannot be optimized: it is not a variable.")
    return [var_list]


def _checked(grad: Any, variable: Any) -> Tensor | IndexedSlices:
    """The gradient as a tensor or slices, or an error if it is not one of ``variable``."""
    if not isinstance(variable, Variable):
        raise NotImplementedError(f"Trying to update {variable!r}, which is not a variable.")
    if not isinstance(grad, IndexedSlices):
        try:
            grad = convert_to_tensor(grad)
        except (TypeError, ValueError):
            raise TypeError(
                "Gradient must be convertible to a Tensor or IndexedSlices, or None, but for "
                f"{variable.name} it is {grad!r}"
            ) from None
    if grad.dtype.base_dtype is not variable.dtype.base_dtype:
        raise TypeError(
            f"The gradient {grad.name} is {grad.dtype.base_dtype.name}, but the variable "
            f"{variable.name} is {variable.dtype.base_dtype.name}; tf.cast converts it."
        )
    dims = variable.get_shape()._dims
    if isinstance(grad, IndexedSlices):
        given, wanted = grad.values.dims, None if dims is None else (None, *dims[1:])
        what = f"The rows {grad.values.name} of a sparse gradient have"
    else:
        given, wanted, what = grad.dims, dims, f"The gradient {grad.name} has"
    if not compatible_dims(given, wanted):
        raise ValueError(
            f"{what} shape {format_dims(given)}, but the variable {variable.name} has "
            f"{format_dims(dims)}"
        )
    return grad
