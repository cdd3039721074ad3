"""``tf.Variable``: what every kind of variable has in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from runnel.graph.conversion import register_tensor_conversion_function
from runnel.graph.default_session import get_default_session
from runnel.graph.dtypes import DType
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape, format_dims
from runnel.variables.proto_names import add_scope, strip_scope
from runnel.variables.save_slice import SaveSliceInfo as SliceInfo
from runnel.variables.synchronization import (
    VariableAggregation,
    VariableSynchronization,
    check_modes,
)
from runnel.variables.updates import Updates


class _VariableType(type):
    """Calling ``Variable`` makes a variable of the kind that is asked for or in force."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not Variable:
            return type.__call__(cls, *args, **kwargs)
        return _creator()(*args, **kwargs)


@cache
def _creator() -> Callable[..., Any]:
    from runnel.variables.creation import create_variable

    return create_variable


class Variable(Updates, metaclass=_VariableType):
    """Mutable state of the graph, with a value of its own in each session.

    A variable must be initialised before it is read; ``tf.global_variables_initializer`` does
    it for all of them. It can be used wherever a tensor can, and then means its value at that
    point of the step.

    ``initial_value`` is a tensor, a value, or a function without arguments that returns one.
    The variable has its type (or ``dtype``) and, unless ``validate_shape`` is False, its shape.
    It is added to ``collections`` (by default the global variables), and to the trainable
    variables if ``trainable``. With ``caching_device``, reads are cached on that device.
    ``constraint`` projects the value after an optimizer has changed it. ``use_resource`` selects
    a resource variable, every use of which is a read of its own, instead of a reference variable.
    ``variable_def`` makes a Python object for a variable that is already in the graph.

    Example:
        >>> w = tf.Variable(tf.zeros([784, 10]), name="w")
        >>> with tf.Session() as sess:
        ...     sess.run(tf.global_variables_initializer())
        ...     sess.run(w.assign_add(tf.ones([784, 10])))
    """

    SaveSliceInfo = SliceInfo

    # NumPy must let ``array + variable`` be the variable's business.
    __array_priority__ = 100

    _trainable: bool
    _synchronization: VariableSynchronization
    _aggregation: VariableAggregation
    _constraint: Callable[[Tensor], Tensor] | None
    _initial_value: Tensor | None
    _initializer_op: Operation
    _caching_device: Any
    _save_slice_info: SliceInfo | None

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
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        raise NotImplementedError("the metaclass makes one of the subclasses")

    # What it is -------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        raise NotImplementedError

    @property
    def op(self) -> Operation:
        raise NotImplementedError

    @property
    def graph(self) -> Graph:
        return self.op.graph

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        return self._aggregation

    @property
    def constraint(self) -> Callable[[Tensor], Tensor] | None:
        return self._constraint

    @property
    def initializer(self) -> Operation:
        """The operation that gives the variable its initial value."""
        return self._initializer_op

    @property
    def initial_value(self) -> Tensor | None:
        """The tensor that the variable is initialised to."""
        return self._initial_value

    @property
    def _shared_name(self) -> str:
        return self.name.partition(":")[0]

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Adds what the caller knows of the static shape; a contradiction is a ValueError."""
        raise NotImplementedError

    def _shape_as_list(self) -> list[int | None] | None:
        return None if self.shape._dims is None else list(self.shape._dims)

    def _set_save_slice_info(self, save_slice_info: SliceInfo | None) -> None:
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self) -> SliceInfo | None:
        return self._save_slice_info

    # Its value --------------------------------------------------------------------------------

    def value(self) -> Tensor:
        """The value as a tensor; a reference variable always returns the same one."""
        raise NotImplementedError

    def read_value(self) -> Tensor:
        """A new read of the value, which happens where it is made: after its control inputs."""
        raise NotImplementedError

    def initialized_value(self) -> Tensor:
        """The value, or the initial value as long as the variable is not initialised."""
        if self._initial_value is None:
            raise ValueError(f"The initial value of {self.name} is not known")
        from runnel.control_flow.conditional import cond
        from runnel.ops.assign import is_variable_initialized

        graph, initial_value = self.graph, self._initial_value
        outside = graph._scopes.override(control_inputs=(), control_flow_context=None)
        with graph.as_default(), outside:
            return cond(is_variable_initialized(self), self.read_value, lambda: initial_value)

    def _as_graph_element(self) -> Tensor:
        raise NotImplementedError

    def eval(self, session: Any = None) -> Any:
        """The value in ``session``, or in the default session."""
        return self._as_graph_element().eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Gives the variable the value ``value`` in a session, adding nothing to the graph."""
        session = session or get_default_session()
        if session is None:
            raise ValueError(
                f"{self.name}: load needs a session: call it inside `with tf.Session():`, "
                "or pass `session=`."
            )
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    # Exchange ---------------------------------------------------------------------------------

    def to_proto(self, export_scope: str | None = None) -> Any:
        """This as a ``VariableDef``, or None when it lies outside ``export_scope``."""
        raise NotImplementedError

    def _variable_def(self, export_scope: str | None, snapshot_name: str) -> Any:
        from tensorboard.compat.proto.variable_pb2 import VariableDef

        described = VariableDef(
            variable_name=strip_scope(self.name, export_scope),
            initializer_name=strip_scope(self.initializer.name, export_scope),
            snapshot_name=strip_scope(snapshot_name, export_scope),
            is_resource=not self.dtype.is_ref_dtype,
            trainable=self.trainable,
            synchronization=self.synchronization.value,
            aggregation=self.aggregation.value,
        )
        if self._initial_value is not None:
            described.initial_value_name = strip_scope(self._initial_value.name, export_scope)
        if self._save_slice_info is not None:
            described.save_slice_info_def.MergeFrom(self._save_slice_info.to_proto(export_scope))
        return described

    def _read_proto(self, variable_def: Any, import_scope: str | None) -> None:
        find = get_default_graph().as_graph_element
        self._synchronization, self._aggregation, self._trainable = check_modes(
            variable_def.synchronization,
            variable_def.aggregation,
            variable_def.trainable,
            variable_def.variable_name,
        )
        self._initializer_op = find(add_scope(variable_def.initializer_name, import_scope))
        initial = variable_def.initial_value_name
        self._initial_value = find(add_scope(initial, import_scope)) if initial else None
        self._save_slice_info = None
        if variable_def.HasField("save_slice_info_def"):
            self._save_slice_info = SliceInfo(
                save_slice_info_def=variable_def.save_slice_info_def, import_scope=import_scope
            )
        self._caching_device = None
        self._constraint = None

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """The variable of the default graph that a ``VariableDef`` describes."""
        return Variable(variable_def=variable_def, import_scope=import_scope)

    # Behaving like a tensor -------------------------------------------------------------------

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            f"The variable {self.name} cannot be iterated; tf.unstack gives a list of its slices."
        )

    def __repr__(self) -> str:
        shape = format_dims(self.shape._dims)
        return f"<tf.Variable '{self.name}' shape={shape} dtype={self.dtype.name}>"

    def __getitem__(self, key: Any) -> Tensor:
        """A slice of the value; ``v[key].assign(x)`` changes that slice of the variable."""
        part: Tensor = Tensor.__getitem__(self.value(), key)  # type: ignore[attr-defined]
        op = part.op
        if op.type == "StridedSlice":
            masks = {k: v for k, v in op.attrs.items() if k.endswith("_mask")}

            def assign(value: Any, name: str | None = None) -> Any:
                place = list(op.inputs[1:])
                return self._slice_assign(place, masks, value, name or f"{op.name}/_assign")

            part.assign = assign  # type: ignore[attr-defined]
        return part


_UNARY = ("neg", "invert", "abs", "pos")
_BINARY = (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "div", "rdiv", "truediv", "rtruediv"),
    *("floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "matmul", "rmatmul"),
    *("and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift"),
    *("lt", "le", "gt", "ge", "divmod", "rdivmod"),
)


def _delegate(operator: str, unary: bool) -> Callable[..., Any]:
    """The tensor's operator, looked up when it is used: families of ops add theirs later."""

    def run(self: Variable, *others: Any) -> Any:
        function = getattr(Tensor, operator, None)
        if function is None:
            if unary:
                raise TypeError(f"Neither a tensor nor a variable has {operator}")
            return NotImplemented
        return function(self.value(), *others)

    run.__name__ = operator
    return run


for _name in (*_UNARY, *_BINARY):
    setattr(Variable, f"__{_name}__", _delegate(f"__{_name}__", _name in _UNARY))


def _to_tensor(
    variable: Variable, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    if dtype is not None and not dtype.is_compatible_with(variable.dtype):
        raise ValueError(
            f"{variable!r} has type {variable.dtype.base_dtype.name}, but {dtype.name} is needed "
            "here. tf.cast converts its value."
        )
    if as_ref and variable.dtype.is_ref_dtype:
        return variable._ref()  # type: ignore[attr-defined]
    return variable.value()


register_tensor_conversion_function(Variable, _to_tensor)
