"""Reference variables: TensorFlow 1's default kind.

``W = tf.Variable(...)`` adds the operations ``W`` (the state), ``W/Assign`` (its initializer) and
``W/read`` (its value, shared by all uses).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import DType
from runnel.graph.graph import get_default_graph
from runnel.graph.graph_scopes import colocate
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape, as_shape
from runnel.ops import state
from runnel.ops.control import identity
from runnel.variables.construction import (
    add_to_collections,
    call_initial_value,
    check_arguments,
    check_not_in_control_flow,
    graph_of,
)
from runnel.variables.initial_value import safe_initial_value
from runnel.variables.proto_names import add_scope
from runnel.variables.synchronization import check_modes
from runnel.variables.variable import Variable


class RefVariable(Variable):
    """A variable denoted by a reference; see :class:`Variable` for the arguments."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._init_from_proto(variable_def, import_scope)
            return
        collections = check_arguments(initial_value, collections, constraint)
        modes = check_modes(synchronization, aggregation, trainable, name)
        self._synchronization, self._aggregation, self._trainable = modes
        self._caching_device = caching_device
        self._constraint = constraint
        self._save_slice_info = None
        graph = graph_of(initial_value)
        with (
            graph.as_default(),
            graph.one_creation_site(),
            graph.control_dependencies(None),  # it is initialised in a step of its own
            graph.name_scope("Variable" if name is None else name) as scope,
        ):
            self._make(initial_value, dtype, shape, validate_shape, scope)
        add_to_collections(self, collections)

    def _make(
        self, initial_value: Any, dtype: Any, shape: Any, validate_shape: bool, scope: str
    ) -> None:
        graph = get_default_graph()
        op_name = scope[:-1]
        if callable(initial_value):
            with graph._attr_scope({"_class": [f"loc:@{op_name}"]}):
                value = call_initial_value(initial_value, dtype)
                self._variable: Tensor = _state(value, shape, validate_shape, scope)
        else:
            value = convert_to_tensor(initial_value, dtype, "initial_value")
            check_not_in_control_flow(value, op_name)
            self._variable = _state(value, shape, validate_shape, scope)
        if validate_shape and not value.shape.is_fully_defined():
            raise ValueError(
                f"initial_value must have a shape specified: {value!r} of variable {op_name} has "
                "not; validate_shape=False allows it."
            )
        self._initial_value = value
        unusual: dict[str, Any] = {} if validate_shape else {"validate_shape": False}
        self._initializer_op = state.assign_op(
            self._variable, safe_initial_value(op_name, value), **unusual
        ).op
        if self._caching_device is not None:
            with graph.device(self._caching_device):
                self._snapshot = identity(self._variable, name="read")
        else:
            self._snapshot = identity(self._variable, name="read")
            colocate(self._snapshot.op, (*graph._scopes.colocation, self._variable.op))

    # What it is -------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._variable.name

    @property
    def dtype(self) -> DType:
        return self._variable.dtype

    @property
    def shape(self) -> TensorShape:
        return self._variable.shape

    @property
    def op(self) -> Operation:
        return self._variable.op

    def set_shape(self, shape: Any) -> None:
        self._variable.set_shape(shape)
        self._snapshot.set_shape(shape)

    def _ref(self) -> Tensor:
        return self._variable

    def _as_graph_element(self) -> Tensor:
        return self._variable

    @property
    def _existing_tensor(self) -> Tensor:
        return self._snapshot

    # Its value --------------------------------------------------------------------------------

    def value(self) -> Tensor:
        return self._snapshot

    def read_value(self) -> Tensor:
        return identity(self._variable, name="read")

    # Exchange ---------------------------------------------------------------------------------

    def to_proto(self, export_scope: str | None = None) -> Any:
        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        return self._variable_def(export_scope, self._snapshot.name)

    def _init_from_proto(self, variable_def: Any, import_scope: str | None) -> None:
        self._read_proto(variable_def, import_scope)
        find = get_default_graph().as_graph_element
        self._variable = find(add_scope(variable_def.variable_name, import_scope))
        self._snapshot = find(add_scope(variable_def.snapshot_name, import_scope))


def _state(value: Tensor, shape: Any, validate_shape: bool, scope: str) -> Tensor:
    """A reference to new state for values like ``value``."""
    if shape is None and validate_shape:
        shape = value.shape
    return state.variable(as_shape(shape), value.dtype.base_dtype, scope)
