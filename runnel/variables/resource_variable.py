"""Resource variables: variables denoted by a handle, read anew by every use.

``W = tf.Variable(..., use_resource=True)`` adds the operations ``W`` (the handle), ``W/Assign``
(its initializer), ``W/IsInitialized/VarIsInitializedOp`` and ``W/Read/ReadVariableOp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from runnel.graph.dtypes import DType
from runnel.graph.graph import get_default_graph, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape
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
from runnel.variables.synchronization import (
    VariableAggregation,
    VariableSynchronization,
    check_modes,
)
from runnel.variables.variable import Variable


class ResourceVariable(Variable):
    """A variable denoted by a handle; see :class:`Variable` for the arguments."""

    _handle: Tensor
    _graph_element: Tensor
    _cached_value: Tensor | None = None
    _dtype: DType
    _shape: TensorShape

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
            graph.control_dependencies(None),  # it is initialised in a step of its own
            graph.name_scope("Variable" if name is None else name) as scope,
        ):
            self._make(initial_value, dtype, shape, scope)
        add_to_collections(self, collections)

    def _make(self, initial_value: Any, dtype: Any, shape: Any, scope: str) -> None:
        graph = get_default_graph()
        op_name = scope[:-1]
        with graph._attr_scope({"_class": [f"loc:@{op_name}"]}):
            value = call_initial_value(initial_value, dtype)
            self._shape = value.shape if shape is None else TensorShape(shape)
            if not self._shape.is_compatible_with(value.shape):
                raise ValueError(
                    f"The initial value of variable {op_name} has shape {value.shape}, but "
                    f"shape={self._shape} was asked for"
                )
            self._dtype = value.dtype.base_dtype
            self._handle = state.handle_op(
                dtype=self._dtype, shape=self._shape, shared_name=op_name, name=scope
            )
        check_not_in_control_flow(value, op_name)
        self._initial_value = value
        with graph.name_scope("IsInitialized"):
            self._is_initialized = state.handle_is_initialized_op(self._handle)
        with (
            graph.name_scope("Assign") as assign_scope,
            graph.colocate_with(None, ignore_existing=True),
            graph.device(self._handle.device),
        ):
            self._initializer_op = state.assign_handle_op(
                self._handle, safe_initial_value(op_name, value), name=assign_scope
            )
        with graph.name_scope("Read"):
            with graph.device(self._handle.device):
                self._graph_element = state.read_op(self._handle, dtype=self._dtype)
            if self._caching_device is not None:
                with (
                    graph.colocate_with(None, ignore_existing=True),
                    graph.device(self._caching_device),
                ):
                    self._cached_value = identity(self._graph_element)

    # What it is -------------------------------------------------------------------------------

    @property
    def handle(self) -> Tensor:
        """The tensor that denotes the variable."""
        return self._handle

    @property
    def name(self) -> str:
        return self._handle.name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def op(self) -> Operation:
        return self._handle.op

    @property
    def create(self) -> Operation:
        """The operation that initialises the variable."""
        return self._initializer_op

    def set_shape(self, shape: Any) -> None:
        self._shape = self._shape.merge_with(shape)

    def is_initialized(self, name: str | None = None) -> Tensor:
        """A boolean tensor: whether the variable has a value in the session."""
        return state.handle_is_initialized_op(self._handle, name=name)

    def _as_graph_element(self) -> Tensor:
        return self._graph_element

    def __bool__(self) -> bool:
        return bool(self.read_value())

    # Its value --------------------------------------------------------------------------------

    def value(self) -> Tensor:
        if self._cached_value is not None:
            return self._cached_value
        graph = self._handle.graph
        with graph.colocate_with(None, ignore_existing=True), graph.device(self._handle.device):
            return self._read()

    def _read(self) -> Tensor:
        value = state.read_op(self._handle, dtype=self._dtype)
        value.set_shape(self._shape)
        return value

    def read_value(self) -> Tensor:
        with name_scope("Read", values=[self._handle]):
            value = self._read()
        return identity(value)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows that ``indices`` name, read without reading the others: ``tf.gather``."""
        with name_scope(name, "Gather", [self._handle]) as scope:
            return state.gather_handle_op(self._handle, indices, dtype=self._dtype, name=scope)

    # Updates ----------------------------------------------------------------------------------

    def _update_scope(self, may_initialize: bool = False) -> AbstractContextManager[Any]:
        # What was cached is read before the variable changes; there may be nothing to read yet.
        before = [] if may_initialize or self._cached_value is None else [self._cached_value]
        return self._after(before)

    @contextmanager
    def _after(self, control_inputs: list[Any]) -> Iterator[None]:
        graph = self._handle.graph
        with graph.as_default(), graph.control_dependencies(control_inputs):
            yield

    def _lazy_read(self, op: Operation) -> UnreadVariable:
        return UnreadVariable(self, op)

    # Exchange ---------------------------------------------------------------------------------

    def to_proto(self, export_scope: str | None = None) -> Any:
        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        read = self._cached_value if self._cached_value is not None else self._graph_element
        return self._variable_def(export_scope, read.name)

    def _init_from_proto(self, variable_def: Any, import_scope: str | None) -> None:
        self._read_proto(variable_def, import_scope)
        find = get_default_graph().as_graph_element
        self._handle = find(add_scope(variable_def.variable_name, import_scope))
        self._shape = TensorShape(self._handle.op.attrs["shape"])
        self._dtype = self._handle.op.attrs["dtype"]
        read = find(add_scope(variable_def.snapshot_name, import_scope))
        if read.op.type != "ReadVariableOp":
            self._cached_value = read
            read = read.op.inputs[0]
        self._graph_element = read


class UnreadVariable(ResourceVariable):
    """A resource variable as an update leaves it: reads of this happen after the update."""

    def __init__(self, variable: ResourceVariable, update: Operation) -> None:
        self._handle = variable._handle
        self._dtype = variable._dtype
        self._shape = variable._shape
        self._update = update
        self._trainable = variable._trainable
        self._synchronization = VariableSynchronization.AUTO
        self._aggregation = VariableAggregation.NONE
        self._constraint = None
        self._initial_value = None
        self._caching_device = None
        self._save_slice_info = None
        self._graph_element = self._read()

    @property
    def name(self) -> str:
        return self._update.name

    @property
    def op(self) -> Operation:
        return self._update

    def _read(self) -> Tensor:
        with self._handle.graph.control_dependencies([self._update]):
            return super()._read()

    def value(self) -> Tensor:
        return self._read()

    def read_value(self) -> Tensor:
        return self._read()

    def _update_scope(self, may_initialize: bool = False) -> AbstractContextManager[Any]:
        return self._after([self._update])
