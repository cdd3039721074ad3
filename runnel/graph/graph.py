"""The graph: operations in the order of construction, names, scopes and collections."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from runnel.graph.attachments import Attachments
from runnel.graph.collections import CollectionStore
from runnel.graph.creation_site import capture_site
from runnel.graph.dtypes import DType
from runnel.graph.graph_scopes import GraphScopes, colocate
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef
from runnel.graph.scopes import check_scope_name
from runnel.graph.shape_inference import infer_shapes
from runnel.graph.shapes import Dims
from runnel.graph.used_names import UsedNames


class Graph(Attachments, GraphScopes, CollectionStore):
    """A dataflow graph. Operations are appended and never removed.

    Building is safe from several threads; scopes (``name_scope``, ``device``,
    ``control_dependencies`` and so on) belong to the thread that opened them.

    Example:
        >>> graph = Graph()
        >>> with graph.as_default():
        ...     c = tf.constant(1.0)
        >>> c.graph is graph
        True
    """

    def __init__(self) -> None:
        super().__init__()
        # Guards _ops, _used_names and the indices of _ops against concurrent builders.
        self._lock = threading.RLock()
        self._ops: list[Operation] = []
        self._names: dict[str, Operation] = {}
        self._names_indexed = 0
        self._used_names = UsedNames()
        self._finalized = False
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Operation] = set()
        self._consumers: dict[Tensor, list[Operation]] = {}
        self._consumers_indexed = 0
        self._mutation_count = 0
        self.seed: int | None = None
        self._skipped_ids = 0
        self.building_function = False
        self._mixed_precision: DType | None = None
        self._check_loops: Any = None
        """Checks, in a graph with loops, that an operation takes nothing from inside another."""

    # Operations -----------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Grows with every operation added."""
        return len(self._ops)

    @property
    def _last_id(self) -> int:
        """The number that TensorFlow 1.15 would have given its newest operation."""
        return len(self._ops) + self._skipped_ids

    @property
    def mutation_count(self) -> int:
        """Grows when an existing operation is changed, so prepared plans can tell."""
        return self._mutation_count

    def _mutated(self) -> None:
        self._check_not_finalized()
        self._mutation_count += 1
        self._consumers.clear()
        self._consumers_indexed = 0

    @property
    def mixed_precision(self) -> DType | None:
        """The 16-bit type in which steps compute products, or None: as they are described."""
        return self._mixed_precision

    def set_mixed_precision(self, dtype: DType | None) -> None:
        """Let steps compute products in ``dtype`` (see ``passes.rewrites.mixed_precision``)."""
        if dtype is not self._mixed_precision:
            self._mutated()
            self._mixed_precision = dtype

    def _check_not_finalized(self) -> None:
        if self._finalized:
            raise RuntimeError(
                "This graph is finalized and cannot be modified: build every operation before "
                "Graph.finalize (a tf.Session or Supervisor may have called it)."
            )

    def add_op(
        self,
        op_def: OpDef,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        output_types: Sequence[DType],
        name: str | None,
        site_depth: int = 3,
        dims: Dims = None,
    ) -> Operation:
        """Appends an operation whose inputs and attributes are already checked and complete.

        ``dims`` is the shape of its one output, where the caller knows it.
        """
        scopes = self._thread.state
        if self._finalized:
            self._check_not_finalized()
        site = scopes.site
        if site is None:
            site = capture_site(site_depth)
        lock = self._lock
        lock.acquire()  # a `with` statement would take twice the time
        try:
            if name is not None and name.endswith("/"):
                full_name = name[:-1]  # a scope that unique_name has made already
            else:
                full_name = self._used_names.unique(name or op_def.name, scopes.name)
            op = Operation(self, op_def, full_name, inputs, (), attrs, "", site)
            if len(output_types) == 1:
                op.outputs = [Tensor(op, 0, output_types[0], dims)]
            else:
                op.outputs = [Tensor(op, i, dtype) for i, dtype in enumerate(output_types)]
            if self._check_loops is not None:
                self._check_loops(op, scopes.control_flow_context)
            if not scopes.plain:
                self._apply_scopes(op, scopes)
            if op_def.takes_reference:
                colocate(op, (*scopes.colocation, inputs[0].op))  # state is updated where it is
            if dims is None:
                infer_shapes(op)
            ops = self._ops
            op.id = len(ops)
            ops.append(op)
        finally:
            lock.release()
        return op

    def adopt(self, operations: Iterable[Operation]) -> None:
        """Appends operations that are complete, uniquely named and in order (an import's)."""
        context = self._scopes.control_flow_context
        with self._lock:
            self._check_not_finalized()
            for op in operations:
                op.id = len(self._ops)
                self._ops.append(op)
                self._used_names.add(op.name)
                if context is not None:
                    op.control_flow_context = context
                    context.AddOp(op)

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        dtypes: Sequence[DType] | None = None,
        input_types: Sequence[DType] | None = None,
        name: str | None = None,
        attrs: dict[str, Any] | None = None,
        **unused: Any,
    ) -> Operation:
        """Adds an operation by type name, with converted inputs and explicit attributes."""
        from runnel.graph.apply import apply_flat
        from runnel.graph.registry import get_op_def

        return apply_flat(self, get_op_def(op_type), list(inputs), dict(attrs or {}), name)

    def get_operations(self) -> list[Operation]:
        """All operations, in the order of construction."""
        return list(self._ops)

    @property
    def _by_name(self) -> dict[str, Operation]:
        """The operations by name. Those that are new since the last look are added now."""
        if self._names_indexed != len(self._ops):
            with self._lock:
                self._names.update([(op.name, op) for op in self._ops[self._names_indexed :]])
                self._names_indexed = len(self._ops)
        return self._names

    def consumers(self, tensor: Tensor) -> list[Operation]:
        """The operations that take ``tensor``."""
        with self._lock:
            for op in self._ops[self._consumers_indexed :]:
                for taken in dict.fromkeys(op.inputs):
                    self._consumers.setdefault(taken, []).append(op)
            self._consumers_indexed = len(self._ops)
            return list(self._consumers.get(tensor, ()))

    # Names ----------------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """``name`` in the current scope, with ``_1``, ``_2`` ... appended if it is taken."""
        return self._used_names.unique(name, self._thread.state.name, mark_as_used)

    def name_scope(self, name: str | None) -> NameScope:
        """Prefixes names within the block, which gets the scope with a slash at its end."""
        return NameScope(self, name)

    def _enter_name_scope(self, name: str | None) -> str:
        """Makes ``name`` the name scope; returns it with a slash at its end."""
        scopes = self._thread.state
        if not name:
            scopes.name = ""
            return ""
        if name[-1] == "/":  # re-entering an existing scope
            scopes.name = name[:-1]
            return name
        check_scope_name(name, not scopes.name)
        with self._lock:
            scopes.name = scope = self.unique_name(name)
        return scope + "/"

    def get_name_scope(self) -> str:
        """The current name scope, without a slash at its end."""
        return self._scopes.name

    # Whole-graph properties -----------------------------------------------------------------

    @property
    def finalized(self) -> bool:
        return self._finalized

    def finalize(self) -> None:
        """Makes the graph read-only."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Makes feeding ``tensor`` an error."""
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor: Tensor) -> bool:
        return tensor not in self._unfeedable

    def prevent_fetching(self, op: Operation) -> None:
        """Makes fetching ``op`` an error."""
        self._unfetchable.add(op)

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        return op not in self._unfetchable

    def as_default(self) -> AbstractContextManager[Graph]:
        """Within the block, operations are added to this graph."""
        return default_graph(self)

    def as_graph_def(
        self,
        from_version: int | None = None,
        add_shapes: bool = False,
        add_origins: bool = False,
    ) -> Any:
        """This graph as a ``GraphDef`` protocol buffer.

        ``add_origins`` records the lines of the program that made each operation, so that errors
        of whoever runs the graph name them.
        """
        from runnel.graph.graph_def import graph_to_graph_def

        return graph_to_graph_def(self, from_version, add_shapes, add_origins)


class NameScope:
    """A block in which a graph's operations are named within a scope."""

    __slots__ = ("_graph", "_name", "_outer")

    def __init__(self, graph: Graph, name: str | None) -> None:
        self._graph = graph
        self._name = name.decode() if isinstance(name, bytes) else name
        self._outer: list[str] = []

    def __enter__(self) -> str:
        self._outer.append(self._graph._thread.state.name)
        return self._graph._enter_name_scope(self._name)

    def __exit__(self, *exception: object) -> None:
        self._graph._thread.state.name = self._outer.pop()


class _DefaultGraphs(threading.local):
    def __init__(self) -> None:
        self.stack: list[Graph] = []


_defaults = _DefaultGraphs()
_global_default: Graph | None = None
_global_lock = threading.Lock()


def get_default_graph() -> Graph:
    """The graph that new operations are added to."""
    global _global_default
    stack = _defaults.stack
    if stack:
        return stack[-1]
    if _global_default is None:
        with _global_lock:
            if _global_default is None:
                _global_default = Graph()
    return _global_default


def reset_default_graph() -> None:
    """Replaces the global default graph by an empty one."""
    global _global_default
    if _defaults.stack:
        raise AssertionError(
            "reset_default_graph cannot be called inside a `with graph.as_default():` block. "
            "Leave the block first, or use a new tf.Graph()."
        )
    _global_default = None


class default_graph:  # noqa: N801 (used as a function)
    """Within the block, ``graph`` is this thread's default graph."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __enter__(self) -> Graph:
        _defaults.stack.append(self._graph)
        return self._graph

    def __exit__(self, *exception: object) -> None:
        _defaults.stack.pop()


def device(device_name_or_function: Any) -> AbstractContextManager[None]:
    """``Graph.device`` of the default graph."""
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs: Any) -> AbstractContextManager[None]:
    """``Graph.control_dependencies`` of the default graph."""
    return get_default_graph().control_dependencies(control_inputs)


def init_scope() -> AbstractContextManager[None]:
    """Operations in the block belong to no loop, branch or control dependency around it.

    So what initialises variables can be made in the middle of a loop's body.
    """
    return control_dependencies(None)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """``Graph.colocate_with`` of the default graph."""
    return get_default_graph().colocate_with(op, ignore_existing)


def container(container_name: str) -> AbstractContextManager[None]:
    """``Graph.container`` of the default graph."""
    return get_default_graph().container(container_name)


_ELEMENTS = (Tensor, Operation)


class name_scope:  # noqa: N801 (TensorFlow's name)
    """A name scope in the default graph, or in the graph of ``values``.

    ``name_scope(name, default_name, values)``: ``name`` if given, else ``default_name``.

    Example:
        >>> with tf.name_scope("layer") as scope:
        ...     x = tf.constant(1.0, name="x")
        >>> x.op.name
        'layer/x'
    """

    __slots__ = ("name", "_values", "_entered")

    def __init__(
        self, name: str | None, default_name: str | None = None, values: Any = None
    ) -> None:
        self.name = default_name if name is None else name
        if self.name is None and values is not None:
            raise ValueError("name_scope needs a name or a default_name when values are given")
        self._values = values
        # The graph, its name scope outside, and whether the graph was made the default one.
        self._entered: list[tuple[Graph, str, bool]] = []

    def __enter__(self) -> str:
        graph = default = get_default_graph()
        for value in self._values or ():
            if isinstance(value, _ELEMENTS):
                graph = value.graph
                break
        outer = graph._thread.state.name
        prefix = graph._enter_name_scope(self.name)
        if graph is not default:
            _defaults.stack.append(graph)
        self._entered.append((graph, outer, graph is not default))
        return prefix

    def __exit__(self, *exception: Any) -> None:
        graph, outer, of_another_graph = self._entered.pop()
        graph._thread.state.name = outer
        if of_another_graph:
            _defaults.stack.pop()


def op_scope(values: Any, name: str | None, default_name: str | None = None) -> name_scope:
    """``name_scope(name, default_name, values)``: the order of arguments of the first releases."""
    return name_scope(name, default_name, values)
