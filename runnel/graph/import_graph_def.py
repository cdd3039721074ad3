"""Adding the nodes of a ``GraphDef`` to a graph: all of them, or, after a mistake, none.

The nodes are read and checked (``imported_node``), joined to each other and to ``input_map``,
put in order (``import_order``) and made into operations that belong to no graph's list yet.
Only when all of that has succeeded does the graph adopt them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.graph.collection_pause import collection_paused
from runnel.graph.conversion import convert_to_tensor, make_array
from runnel.graph.creation_site import Site, capture_site
from runnel.graph.device import merge_device
from runnel.graph.dtypes import DType, as_dtype
from runnel.graph.functions.expansion import expand_functions
from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.graph_def import GRAPH_DEF_VERSION, ORIGIN
from runnel.graph.import_order import import_order, is_back_edge
from runnel.graph.imported_node import Endpoint, ImportedNode, parse_endpoint, read_nodes
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, get_op_def
from runnel.graph.shape_inference import infer_shapes
from runnel.graph.shapes import merge_dims

_COLOCATED = "loc:@"


def import_graph_def(
    graph_def: Any,
    input_map: dict[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the nodes of a ``GraphDef`` to the default graph, under the prefix ``name``.

    ``input_map`` replaces tensors of the imported graph (``"x:0"``; ``"^x"`` for a control
    input) by tensors of this one. ``return_elements`` names the operations (``"x"``) and tensors
    (``"x:0"``) to return. ``name`` defaults to ``"import"``; an empty one adds no prefix.
    ``producer_op_list`` (an ``OpList``, as a MetaGraphDef holds it) lets attributes that this
    version does not know pass while they have the writer's default.

    A mistake in the GraphDef is a ValueError that names the node, and the graph is unchanged.

    Example:
        >>> graph_def = tf.GraphDef.FromString(open("frozen.pb", "rb").read())
        >>> y, = tf.import_graph_def(graph_def, {"x:0": x}, ["y:0"], name="model")
    """
    del op_dict  # TensorFlow deprecated it long ago
    graph_def = _as_message(graph_def, "graph_def", "GraphDef", "graph_pb2")
    if producer_op_list is not None:
        producer_op_list = _as_message(producer_op_list, "producer_op_list", "OpList", "op_def_pb2")
    graph = get_default_graph()
    graph._check_not_finalized()
    _check_versions(graph_def.versions)
    with collection_paused():
        nodes = read_nodes(expand_functions(graph_def), producer_op_list)
        importer = _Importer(graph, nodes, capture_site(1))
        importer.replace_inputs(input_map, name)
        returned = importer.find_elements(return_elements)
        importer.check_edges()
        importer.build()
        importer.commit(name)
    return None if returned is None else [importer.element(e) for e in returned]


def extend_graph(graph: Graph, graph_def: Any) -> None:
    """Adds nodes to ``graph`` that may take what is there already, all of them or none.

    A mistake is a ValueError, as in :func:`import_graph_def`. No line of this process has made the
    operations: those that the nodes name are theirs.
    """
    graph._check_not_finalized()
    _check_versions(graph_def.versions)
    with collection_paused():
        importer = _Importer(graph, read_nodes(expand_functions(graph_def), None), ())
        importer.take_what_exists()
        importer.check_edges()
        importer.build()
        with graph.as_default():
            importer.commit("")


def _as_message(value: Any, argument: str, kind: str, module: str) -> Any:
    """``value``, or its equal when another package (TensorFlow itself) defines its class."""
    from importlib import import_module

    cls = getattr(import_module(f"tensorboard.compat.proto.{module}"), kind)
    if isinstance(value, cls):
        return value
    descriptor = getattr(value, "DESCRIPTOR", None)
    if descriptor is not None and descriptor.name == kind:
        return cls.FromString(value.SerializeToString())
    hint = f" Use tf.{kind}.FromString to read serialized bytes." if kind == "GraphDef" else ""
    raise TypeError(f"{argument} must be a {kind} proto, not {type(value).__name__}.{hint}")


def _check_versions(versions: Any) -> None:
    if versions.min_consumer > GRAPH_DEF_VERSION:
        raise ValueError(
            f"The GraphDef asks for a reader of version {versions.min_consumer} or later; this is "
            f"{GRAPH_DEF_VERSION}."
        )
    if GRAPH_DEF_VERSION in versions.bad_consumers:
        raise ValueError(f"The GraphDef excludes readers of version {GRAPH_DEF_VERSION}.")


# A name in the GraphDef (an operation), an endpoint of it (a tensor), or a tensor of the graph.
_Element = str | Endpoint | Tensor


class _Importer:
    """One import: from checked nodes to operations of ``graph``."""

    def __init__(self, graph: Graph, nodes: dict[str, ImportedNode], site: Site) -> None:
        self.graph = graph
        self.nodes = nodes
        self.site = site
        self.replaced: dict[Endpoint, Tensor] = {}
        self.constants: list[Operation] = []
        """Values of the input map that are not tensors yet."""
        self.operations: dict[str, Operation] = {}
        self.existing: dict[str, Operation] = {}
        """What nodes may name that is in the graph already."""

    # The user's maps ------------------------------------------------------------------------

    def replace_inputs(self, input_map: dict[str, Any] | None, name: str | None) -> None:
        """Puts the tensors of ``input_map`` in the place of those that they replace."""
        if not input_map:
            return
        if not isinstance(input_map, dict) or not all(isinstance(k, str) for k in input_map):
            raise TypeError("input_map must be a dictionary that maps strings to tensors.")
        controls: dict[str, Operation] = {}
        unknown = []
        for key, value in input_map.items():
            endpoint = (key[1:], 0) if key.startswith("^") else parse_endpoint(key)
            node = None if endpoint is None else self.nodes.get(endpoint[0])
            if endpoint is None or (node is None and not self._is_taken(endpoint, key)):
                unknown.append(key)
            elif key.startswith("^"):
                element = self.graph.as_graph_element(value)
                controls[endpoint[0]] = element.op if isinstance(element, Tensor) else element
            elif node is not None and endpoint[1] >= len(node.output_types):
                unknown.append(key)
            else:
                self.replaced[endpoint] = self._as_tensor(value, key, name)
        if unknown:
            raise ValueError(
                f"input_map names what is not in graph_def: {', '.join(map(repr, unknown))}."
            )
        for node in self.nodes.values():
            node.inputs = [self.replaced.get(e, e) for e in node.inputs]  # type: ignore[arg-type]
            node.controls = [controls.get(c, c) for c in node.controls]  # type: ignore[arg-type]

    def _is_taken(self, endpoint: Endpoint, key: str) -> bool:
        """True where nodes take what is not in the GraphDef: a part that was cut out of a graph."""
        if key.startswith("^"):
            return any(endpoint[0] in node.controls for node in self.nodes.values())
        return any(endpoint in node.inputs for node in self.nodes.values())

    def take_what_exists(self) -> None:
        """Joins nodes to the operations of the graph that they name."""
        existing = self.existing = self.graph._by_name
        for node in self.nodes.values():
            if node.name in existing:
                raise node.error("the graph has an operation of this name already")
            inputs: list[Any] = []
            for endpoint in node.inputs:
                if not isinstance(endpoint, Tensor):
                    op = existing.get(endpoint[0])
                    if op is not None and endpoint[1] < len(op.outputs):
                        inputs.append(op.outputs[endpoint[1]])
                        continue
                inputs.append(endpoint)
            node.inputs = inputs
            node.controls = [
                existing[c] if isinstance(c, str) and c in existing else c for c in node.controls
            ]

    def _as_tensor(self, value: Any, key: str, name: str | None) -> Tensor:
        if isinstance(value, Tensor) or hasattr(value, "_as_graph_element"):
            tensor = convert_to_tensor(value)
            if tensor.graph is not self.graph:
                raise ValueError(f"input_map[{key!r}]: {tensor!r} is of another graph.")
            return tensor
        if name == "":
            raise ValueError(
                f"input_map[{key!r}] is not a tensor; that needs a non-empty name. Convert it "
                "with tf.convert_to_tensor before the import."
            )
        array = make_array(value, None)
        attrs = {"value": array.copy(), "dtype": as_dtype(array.dtype)}
        label = f"_inputs/Const_{len(self.constants)}" if self.constants else "_inputs/Const"
        op = self._operation(get_op_def("Const"), label, [], attrs, [as_dtype(array.dtype)])
        self.constants.append(op)
        return op.outputs[0]

    def find_elements(self, names: Sequence[str] | None) -> list[_Element] | None:
        """The elements to return, checked."""
        if names is None:
            return None
        if isinstance(names, str) or not all(isinstance(n, str) for n in names):
            raise TypeError("return_elements must be a list of strings.")
        elements: list[_Element] = []
        for name in names:
            endpoint = parse_endpoint(name)
            node = None if endpoint is None else self.nodes.get(endpoint[0])
            if endpoint is None or node is None:
                raise ValueError(f"The return element {name!r} is not in graph_def.")
            if ":" not in name:
                elements.append(name)
                continue
            if endpoint[1] >= len(node.output_types):
                raise ValueError(
                    f"The return element {name!r} is not in graph_def: {node.name!r} has "
                    f"{len(node.output_types)} outputs."
                )
            elements.append(self.replaced.get(endpoint, endpoint))
        return elements

    def element(self, element: _Element) -> Any:
        """The operation or tensor that ``element`` became."""
        if isinstance(element, Tensor):
            return element
        if isinstance(element, str):
            return self.operations[element]
        return self.operations[element[0]].outputs[element[1]]

    # Checking -------------------------------------------------------------------------------

    def check_edges(self) -> None:
        """Every input exists and has the type that its consumer expects."""
        nodes = self.nodes
        for node in nodes.values():
            for position, endpoint in enumerate(node.inputs):
                if isinstance(endpoint, Tensor):
                    given, shown = endpoint.dtype, endpoint.name
                else:
                    producer = nodes.get(endpoint[0])
                    if producer is None:
                        raise node.error(f"its input {endpoint[0]!r} is not in graph_def")
                    if endpoint[1] >= len(producer.output_types):
                        raise node.error(
                            f"its input '{endpoint[0]}:{endpoint[1]}' does not exist: "
                            f"{endpoint[0]!r} has {len(producer.output_types)} outputs"
                        )
                    given = producer.output_types[endpoint[1]]
                    shown = f"{endpoint[0]}:{endpoint[1]}"
                argument, wanted = node.expected[position]
                if given is not wanted and given.base_dtype is not wanted:
                    raise node.error(
                        f"input {position} ({argument.name!r}) must be {wanted.name}, but "
                        f"{shown!r} is {given.name}"
                    )
                if argument.is_ref and not given.is_ref_dtype:
                    raise node.error(
                        f"input {position} ({argument.name!r}) must be a reference to a variable, "
                        f"but {shown!r} is a plain {given.name}"
                    )
            for control in node.controls:
                if isinstance(control, str) and control not in nodes:
                    raise node.error(f"its control input {control!r} is not in graph_def")
            if "_class" in node.attrs:
                self._check_colocation(node)

    def _check_colocation(self, node: ImportedNode) -> None:
        groups = node.attrs["_class"]
        if not isinstance(groups, list) or not all(isinstance(g, str) for g in groups):
            raise node.error("attribute '_class' must be a list of strings")
        for group in groups:
            name = group.removeprefix(_COLOCATED)
            if name is not group and name not in self.nodes and name not in self.existing:
                raise node.error(f"it is to be colocated with {group[5:]!r}, not in graph_def")

    # Making operations ----------------------------------------------------------------------

    def _operation(
        self,
        op_def: OpDef,
        name: str,
        inputs: list[Tensor],
        attrs: dict[str, Any],
        types: Sequence[DType],
    ) -> Operation:
        op = Operation(self.graph, op_def, name, inputs, (), attrs, "", self.site)
        op.outputs = [Tensor(op, i, dtype) for i, dtype in enumerate(types)]
        try:
            infer_shapes(op)
        except ValueError:
            raise
        except Exception as error:  # a shape function trusts attributes that a program gives
            raise ValueError(
                f"Node {name!r} ({op_def.name}): its output shapes cannot be inferred: "
                f"{type(error).__name__}: {error}"
            ) from error
        return op

    def build(self) -> None:
        """Makes an operation of every node, with static shapes, outside the graph."""
        nodes, operations = self.nodes, self.operations
        back_edges: list[tuple[Operation, int, Endpoint]] = []
        for node in import_order(nodes):
            inputs: list[Tensor] = []
            open_ends: list[tuple[int, Endpoint]] = []
            for position, endpoint in enumerate(node.inputs):
                if isinstance(endpoint, Tensor):
                    inputs.append(endpoint)
                elif endpoint[0] in operations:
                    inputs.append(operations[endpoint[0]].outputs[endpoint[1]])
                else:
                    assert is_back_edge(nodes[endpoint[0]], node)
                    open_ends.append((position, endpoint))
                    inputs.append(_unmade(nodes[endpoint[0]], endpoint[1]))
            origin = node.attrs.pop(ORIGIN, None)
            op = self._operation(node.op_def, node.name, inputs, node.attrs, node.output_types)
            if isinstance(origin, list) and all(isinstance(text, str) for text in origin):
                op.site = tuple(origin)
            back_edges += [(op, position, endpoint) for position, endpoint in open_ends]
            op.control_inputs = [operations[c] if isinstance(c, str) else c for c in node.controls]
            override = node.attrs.get("_gradient_op_type")
            op.gradient_name = override if isinstance(override, str) else None
            if node.output_shapes is not None:
                _merge_shapes(node, op)
            operations[node.name] = op
        for op, position, (name, index) in back_edges:
            inputs = list(op.inputs)
            inputs[position] = operations[name].outputs[index]
            op.inputs = inputs

    # Changing the graph ---------------------------------------------------------------------

    def commit(self, name: str | None) -> None:
        """Names the operations, applies the scopes in force, and hands them to the graph."""
        graph = self.graph
        with graph._lock, graph.name_scope("import" if name is None else name) as prefix:
            self._rename(prefix)
            self._rename_frames(prefix)
            for node in self.nodes.values():
                self._place(node)
            for node in self.nodes.values():
                if "_class" in node.attrs:
                    self._colocate(node)
            added = [*self.constants, *self.operations.values()]
            self._control_by_scope(added)
            graph.adopt(added)

    def _rename(self, prefix: str) -> None:
        taken = self.graph._used_names
        own = {f"{prefix}{name}".lower() for name in self.operations}
        for op in [*self.constants, *self.operations.values()]:
            full = f"{prefix}{op.name}"
            if full in taken:
                count = 1
                while (key := f"{full}_{count}".lower()) in taken or key in own:
                    count += 1
                full = f"{full}_{count}"
                own.add(full.lower())
            op.name = full

    def _rename_frames(self, prefix: str) -> None:
        """Gives each loop a frame of its own, also where a file is imported twice."""
        enters = [op for op in self.operations.values() if "frame_name" in op.op_def.attributes]
        names = dict.fromkeys(op.attrs["frame_name"] for op in enters)
        ops = self.graph._ops if names else []
        taken = {op.attrs["frame_name"] for op in ops if "frame_name" in op.op_def.attributes}
        for name in names:
            count, full = 0, f"{prefix}{name}"
            while full in taken:
                count, full = count + 1, f"{prefix}{name}_{count + 1}"
            names[name] = full
            taken.add(full)
        for op in enters:
            op.attrs["frame_name"] = names[op.attrs["frame_name"]]

    def _place(self, node: ImportedNode) -> None:
        """The file's device, within the device scopes in force."""
        op = self.operations[node.name]
        scopes = self.graph._scopes
        op.device = node.device
        if scopes.has_device_functions:
            op.device = scopes.device_of(op)
        elif scopes.static_device:
            op.device = merge_device(scopes.static_device, node.device)

    def _colocate(self, node: ImportedNode) -> None:
        op = self.operations[node.name]
        groups = node.attrs["_class"]
        anchors = {**self.existing, **self.operations} if self.existing else self.operations
        others = [
            anchors[group.removeprefix(_COLOCATED)]
            for group in groups
            if group.startswith(_COLOCATED)
        ]
        kept = [g for g in groups if not g.startswith(_COLOCATED)]
        names = [f"{_COLOCATED}{other.name}" for other in others]
        op.attrs = {**op.attrs, "_class": kept + names}
        op.device = next((other.device for other in others if other.device), op.device)

    def _control_by_scope(self, operations: list[Operation]) -> None:
        """What is imported waits for the control dependencies in force."""
        waits = self.graph._scopes.control_inputs
        if not waits:
            return
        for op in operations:
            present = {t.op for t in op.inputs}.union(op.control_inputs)
            op.control_inputs = [*op.control_inputs, *(w for w in waits if w not in present)]


def _unmade(node: ImportedNode, index: int) -> Tensor:
    """Stands for a loop's back edge while its producer is not made: a value of unknown shape."""
    op = Operation(get_default_graph(), node.op_def, node.name, [], (), node.attrs, "", ())
    op.outputs = [Tensor(op, i, dtype) for i, dtype in enumerate(node.output_types)]
    return op.outputs[index]


def _merge_shapes(node: ImportedNode, op: Operation) -> None:
    """Adds the static shapes that the writer recorded; a contradiction is a mistake."""
    shapes = node.output_shapes or []
    if len(shapes) != len(op.outputs):
        raise node.error(
            f"attribute '_output_shapes' has {len(shapes)} shapes for {len(op.outputs)} outputs"
        )
    for tensor, shape in zip(op.outputs, shapes):
        if tensor.value_index in op.op_def.empty_outputs:
            continue
        try:
            tensor.dims = merge_dims(tensor.dims, shape._dims)
        except ValueError as error:
            raise node.error(f"attribute '_output_shapes' contradicts it: {error}") from None


__all__ = ["import_graph_def"]
