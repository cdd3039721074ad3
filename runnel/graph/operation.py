"""Operations and the tensors that flow between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from runnel.graph.creation_site import Site, render_site
from runnel.graph.default_session import get_default_session
from runnel.graph.dtypes import DType
from runnel.graph.shapes import Dims, TensorShape, as_dims, format_dims, merge_dims

if TYPE_CHECKING:
    from runnel.graph.graph import Graph
    from runnel.graph.registry import OpDef


class Tensor:
    """A symbolic value: output ``value_index`` of an operation.

    ``dims`` is its static shape as a tuple (None where unknown); ``shape`` the same as a
    :class:`TensorShape`.
    """

    __slots__ = ("op", "value_index", "dtype", "dims", "__weakref__", "__dict__")

    # NumPy must not try to treat a Tensor as a sequence in ``array + tensor``.
    __array_priority__ = 100

    OVERLOADABLE_OPERATORS: ClassVar[set[str]] = set()
    """The operators that a class which stands for a tensor takes from it."""

    def __init__(self, op: Operation, value_index: int, dtype: DType, dims: Dims = None) -> None:
        self.op = op
        self.value_index = value_index
        self.dtype = dtype
        self.dims = dims

    @property
    def graph(self) -> Graph:
        return self.op.graph

    @property
    def name(self) -> str:
        return f"{self.op.name}:{self.value_index}"

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        shape = TensorShape.__new__(TensorShape)
        shape._dims = self.dims
        return shape

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Adds what the caller knows of the static shape; a contradiction is a ValueError."""
        try:
            self.dims = merge_dims(self.dims, as_dims(shape))
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None

    def _shape_as_list(self) -> list[int | None] | None:
        return None if self.dims is None else list(self.dims)

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as an input."""
        return self.op.graph.consumers(self)

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> Any:
        """Runs this tensor in ``session`` or the default session and returns its value."""
        return _session_for(self.op.graph, session, "evaluate a tensor").run(self, feed_dict)

    def __copy__(self) -> Tensor:
        return self

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={format_dims(self.dims)} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        return f'Tensor("{self.name}", shape={format_dims(self.dims)}, dtype={self.dtype.name})'

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self.name} has no value while the graph is being built, so Python's `if`, `while` "
            "and `and` cannot test it. Use tf.cond or tf.logical_and to decide inside the graph, "
            "`is not None` to ask whether there is a tensor, or session.run to get its value."
        )

    def __iter__(self) -> Iterator[Tensor]:
        raise TypeError(
            f"{self.name} cannot be iterated while the graph is being built. "
            "Use tf.unstack for a static number of slices, or tf.map_fn."
        )

    def __len__(self) -> int:
        raise TypeError(f"len() is not defined for {self.name}; use its .shape or tf.shape(x)")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"Cannot convert the symbolic tensor {self.name} to a NumPy array; "
            "session.run gives its value."
        )

    if TYPE_CHECKING:
        # Defined by runnel.ops.operators, runnel.ops.comparison and runnel.ops.indexing.
        def __add__(self, y: Any) -> Tensor: ...
        def __radd__(self, x: Any) -> Tensor: ...
        def __sub__(self, y: Any) -> Tensor: ...
        def __rsub__(self, x: Any) -> Tensor: ...
        def __mul__(self, y: Any) -> Tensor: ...
        def __rmul__(self, x: Any) -> Tensor: ...
        def __truediv__(self, y: Any) -> Tensor: ...
        def __rtruediv__(self, x: Any) -> Tensor: ...
        def __floordiv__(self, y: Any) -> Tensor: ...
        def __rfloordiv__(self, x: Any) -> Tensor: ...
        def __mod__(self, y: Any) -> Tensor: ...
        def __rmod__(self, x: Any) -> Tensor: ...
        def __pow__(self, y: Any) -> Tensor: ...
        def __rpow__(self, x: Any) -> Tensor: ...
        def __matmul__(self, y: Any) -> Tensor: ...
        def __rmatmul__(self, x: Any) -> Tensor: ...
        def __and__(self, y: Any) -> Tensor: ...
        def __rand__(self, x: Any) -> Tensor: ...
        def __or__(self, y: Any) -> Tensor: ...
        def __ror__(self, x: Any) -> Tensor: ...
        def __xor__(self, y: Any) -> Tensor: ...
        def __rxor__(self, x: Any) -> Tensor: ...
        def __lt__(self, y: Any) -> Tensor: ...
        def __le__(self, y: Any) -> Tensor: ...
        def __gt__(self, y: Any) -> Tensor: ...
        def __ge__(self, y: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, key: Any) -> Tensor: ...

    @staticmethod
    def _override_operator(operator: str, function: Callable[..., Any]) -> None:
        setattr(Tensor, operator, function)
        Tensor.OVERLOADABLE_OPERATORS.add(operator)


class Operation:
    """A node of a graph: a type, inputs, attributes and the tensors it produces.

    ``id`` is its position in the order of construction, which is also the order in which a
    step runs operations that data and control edges leave unordered.
    """

    __slots__ = (
        "graph",
        "op_def",
        "name",
        "id",
        "inputs",
        "control_inputs",
        "attrs",
        "outputs",
        "device",
        "site",
        "original_op",
        "gradient_name",
        "control_flow_context",
        "__weakref__",
    )

    outputs: list[Tensor]
    """What it produces; whoever makes the operation sets it."""

    def __init__(
        self,
        graph: Graph,
        op_def: OpDef,
        name: str,
        inputs: Sequence[Tensor],
        control_inputs: Sequence[Operation],
        attrs: dict[str, Any],
        device: str,
        site: Site,
    ) -> None:
        self.graph = graph
        self.op_def = op_def
        self.name = name
        self.inputs = inputs
        self.control_inputs = control_inputs
        self.attrs = attrs
        self.device = device
        self.site = site
        self.id = -1
        self.original_op: Operation | None = None
        self.gradient_name: str | None = None
        self.control_flow_context: Any = None

    @property
    def type(self) -> str:
        return self.op_def.name

    @property
    def _original_op(self) -> Operation | None:
        return self.original_op

    @property
    def _id(self) -> int:
        return self.id

    # Programs that edit graphs read these.

    @property
    def _outputs(self) -> list[Tensor]:
        return self.outputs

    @property
    def _inputs(self) -> list[Tensor]:
        return list(self.inputs)

    @property
    def _control_inputs(self) -> list[Operation]:
        return list(self.control_inputs)

    def values(self) -> tuple[Tensor, ...]:
        """The outputs, as a tuple."""
        return tuple(self.outputs)

    def get_attr(self, name: str) -> Any:
        """The value of an attribute (strings as bytes, as TensorFlow gives them)."""
        try:
            value = self.attrs[name]
        except KeyError:
            raise ValueError(f"Operation {self.name!r} has no attribute named {name!r}.") from None
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, list):
            return [v.encode() if isinstance(v, str) else v for v in value]
        return value

    def grouped_inputs(self) -> list[Any]:
        """The inputs as the signature groups them: a tensor, or a list for a list argument."""
        return self.op_def.group(self.inputs, self.attrs)

    def colocation_groups(self) -> list[bytes]:
        """Names of the groups that must share a device with this operation."""
        groups = self.attrs.get("_class")
        if groups:
            return [g.encode() if isinstance(g, str) else g for g in groups]
        return [f"loc:@{self.name}".encode()]

    def run(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> None:
        """Runs this operation in ``session`` or the default session."""
        _session_for(self.graph, session, "run an operation").run(self, feed_dict)

    @property
    def node_def(self) -> Any:
        """This operation as a ``NodeDef`` protocol buffer."""
        from runnel.graph.graph_def import operation_to_node_def

        return operation_to_node_def(self)

    @property
    def origin(self) -> str:
        """The name of the operation, of this graph or the one it was made in, that errors tell."""
        return self.site[0] if self.site and isinstance(self.site[0], str) else self.name

    def creation_site(self) -> list[str]:
        """``file:line, in function`` of the user's frames that created this, outermost first."""
        return render_site(self.site) or [f"<{self.name} was not created by Python code>"]

    @property
    def traceback(self) -> list[str]:
        return self.creation_site()

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            if not isinstance(op, Operation):
                raise TypeError(f"A control input must be an Operation, not {op!r}")
            if op.graph is not self.graph:
                raise ValueError(f"{op.name!r} and {self.name!r} are of different graphs")
        with self.graph._lock:
            fresh = [op for op in ops if op not in self.control_inputs]
            self.control_inputs = [*self.control_inputs, *fresh]
            self.graph._mutated()

    def _remove_all_control_inputs(self) -> None:
        with self.graph._lock:
            self.control_inputs = ()
            self.graph._mutated()

    def _update_input(self, index: int, tensor: Tensor) -> None:
        if tensor.graph is not self.graph:
            raise ValueError(f"{tensor.name!r} and {self.name!r} are of different graphs")
        with self.graph._lock:
            inputs = list(self.inputs)
            inputs[index] = tensor
            self.inputs = inputs
            self.graph._mutated()

    def _set_attr(self, name: str, value: Any) -> None:
        with self.graph._lock:
            self.attrs = {**self.attrs, name: value}  # operations share dictionaries
            self.graph._mutated()

    def _set_device(self, device: Any) -> None:
        from runnel.graph.device import merge_device

        with self.graph._lock:
            self.device = merge_device("", device)
            self.graph._mutated()

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"

    def __str__(self) -> str:
        return str(self.node_def)


def _session_for(graph: Graph, session: Any, what: str) -> Any:
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                f"Cannot {what} without a session: call it inside `with tf.Session():`, "
                "or pass `session=`."
            )
    if session.graph is not graph:
        raise ValueError(
            f"Cannot {what} of one graph in a session of another. "
            "Pass the session of the tensor's graph explicitly."
        )
    return session
