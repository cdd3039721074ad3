"""``tf.graph_util``: from a ``GraphDef`` for training to one for inference."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from runnel.graph.dtypes import as_dtype, int32
from runnel.graph.import_graph_def import import_graph_def
from runnel.graph.operation import Tensor
from runnel.graph.registry import registered_ops
from runnel.graph.serialized_message import require_size
from runnel.graph.shapes import TensorShape
from runnel.graph.tensor_proto import encode_array, make_tensor_proto
from runnel.ops.state import read_op

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def _producer(text: str) -> str:
    """The node that an input ``"x"``, ``"x:1"`` or ``"^x"`` refers to."""
    return text.removeprefix("^").partition(":")[0]


def _check_graph_def(graph_def: Any, argument: str) -> None:
    if getattr(getattr(graph_def, "DESCRIPTOR", None), "name", None) != "GraphDef":
        raise TypeError(f"{argument} must be a GraphDef proto, not {type(graph_def).__name__}.")


def _like(graph_def: Any) -> Any:
    """An empty GraphDef with the versions and functions of ``graph_def``."""
    result = type(graph_def)()
    result.versions.CopyFrom(graph_def.versions)
    result.library.CopyFrom(graph_def.library)
    return result


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> Any:
    """The part of ``graph_def`` that the nodes named ``dest_nodes`` depend on."""
    _check_graph_def(graph_def, "graph_def")
    if isinstance(dest_nodes, str | bytes):
        raise TypeError("dest_nodes must be a list of names.")
    nodes = {node.name: node for node in graph_def.node}
    needed: set[str] = set()
    waiting = [(name, "dest_nodes") for name in dest_nodes]
    while waiting:
        name, consumer = waiting.pop()
        if name in needed:
            continue
        if name not in nodes:
            by = consumer if consumer == "dest_nodes" else f"an input of {consumer!r}"
            raise ValueError(f"{name!r}, {by}, is not in the graph.")
        needed.add(name)
        waiting += [(_producer(text), name) for text in nodes[name].input]
    result = _like(graph_def)
    result.node.extend(node for node in graph_def.node if node.name in needed)
    return result


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """True for a node (or operation) whose values only a CPU can hold: those of strings."""
    node_def = node if hasattr(node, "attr") else node.node_def
    if pin_variables_on_cpu and node_def.op in _VARIABLES:
        return True
    kinds = [node_def.attr[key].type for key in ("dtype", "DstT") if key in node_def.attr]
    return any(as_dtype(kind).name == "string" for kind in kinds)


# Freezing -------------------------------------------------------------------------------------


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> Any:
    """A GraphDef that computes the named nodes, with the variables' present values built in.

    Only variables in the whitelist and not in the blacklist (where given) are converted. A node
    that updates a converted variable is a ValueError: a constant cannot be updated.

    Example:
        >>> frozen = tf.graph_util.convert_variables_to_constants(
        ...     sess, sess.graph.as_graph_def(), ["softmax"])
    """
    graph_def = extract_sub_graph(input_graph_def, output_node_names)
    names = [
        node.name
        for node in graph_def.node
        if node.op in _VARIABLES
        and (variable_names_whitelist is None or node.name in variable_names_whitelist)
        and (variable_names_blacklist is None or node.name not in variable_names_blacklist)
    ]
    tensors = [_reading(sess.graph, name) for name in names]
    values = dict(zip(names, sess.run(tensors) if tensors else []))
    require_size(
        sum(value.nbytes for value in values.values()),
        "The graph with the values of its variables",
        "Leave the largest out by variable_names_blacklist, or write a SavedModel, which has them "
        "in a checkpoint.",
    )
    denoted = _denoted_variables(graph_def, set(names))
    dtypes = {node.name: node.attr["dtype"].type for node in graph_def.node if node.name in values}
    result = _like(graph_def)
    for node in graph_def.node:
        if node.name in values:
            dtype = as_dtype(node.attr["dtype"].type)
            frozen = result.node.add(name=node.name, op="Const", device=node.device)
            frozen.attr["dtype"].type = dtype.as_datatype_enum
            content = encode_array(values[node.name], dtype)
            frozen.attr["value"].tensor.MergeFromString(content.SerializeToString())
        elif node.name in denoted:
            _add_value_carrier(result, node, dtypes[denoted[node.name]])
        elif node.op in _READERS and _producer(node.input[0]) in denoted:
            _freeze_reader(result, node, dtypes[denoted[_producer(node.input[0])]], values)
        else:
            _check_reads_only(node, denoted)
            result.node.add().CopyFrom(node)
    return result


_CARRIERS = {
    f"{prefix}{kind}": kind
    for kind in ("Identity", "Enter", "Exit", "Switch", "Merge", "NextIteration")
    for prefix in ("", "Ref")
}
"""Ops that hand a variable on, into and out of loops and branches; the same ops for values."""
_READERS = {
    "ReadVariableOp": "Identity",
    "ResourceGather": "GatherV2",
    "ResourceGatherNd": "GatherNd",
    "VariableShape": "Shape",
}
"""Ops that read a variable by its handle; what does the same to a value."""


def _hands_on_a_variable(node: Any) -> bool:
    """True where ``node`` carries a handle or a reference, rather than a value."""
    if node.op not in _CARRIERS:
        return False
    return node.op != _CARRIERS[node.op] or as_dtype(node.attr["T"].type).name == "resource"


def _denoted_variables(graph_def: Any, names: set[str]) -> dict[str, str]:
    """Maps variables of ``names``, and all that hands them on, to a variable that they denote."""
    carriers = [node for node in graph_def.node if _hands_on_a_variable(node)]
    consumers: dict[str, list[Any]] = {}
    for node in carriers:
        for text in _carried(node):
            consumers.setdefault(_producer(text), []).append(node)
    denoted = {name: name for name in names}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        for node in consumers.get(name, ()):
            if node.name not in denoted:
                denoted[node.name] = denoted[name]
                waiting.append(node.name)
    for node in carriers:
        kept = [text for text in _carried(node) if _producer(text) not in denoted]
        if node.name in denoted and kept:
            raise ValueError(
                f"{node.name!r} ({node.op}) hands on either the variable {denoted[node.name]!r}, "
                f"which becomes a constant, or {_producer(kept[0])!r}, which does not: convert "
                "both or neither."
            )
    return denoted


def _carried(node: Any) -> list[str]:
    """The inputs that a carrier hands on: all that carry data, but for the choice of a Switch."""
    data = [text for text in node.input if not text.startswith("^")]
    return data[:1] if _CARRIERS[node.op] == "Switch" else data


def _add_value_carrier(result: Any, node: Any, dtype: int) -> None:
    """Adds what hands on the value where ``node`` hands on the variable."""
    carrier = result.node.add()
    carrier.CopyFrom(node)
    carrier.op = _CARRIERS[node.op]
    carrier.attr["T"].type = dtype
    carrier.attr.pop("_output_shapes", None)  # the handle's


def _reading(graph: Any, name: str) -> Tensor:
    """A tensor of the session's graph that holds the value of the variable ``name``."""
    op = graph.get_operation_by_name(name)
    if op.type != "VarHandleOp":
        return op.outputs[0]
    for consumer in op.outputs[0].consumers():
        if consumer.type == "ReadVariableOp" and not consumer.control_inputs:
            return consumer.outputs[0]
    with graph.as_default(), graph.control_dependencies(None):
        return read_op(op.outputs[0], dtype=op.get_attr("dtype"), name=f"{name}/Read")


def _freeze_reader(result: Any, node: Any, dtype: int, constants: Collection[str]) -> None:
    """Adds what does to the value that ``node`` does to the variable."""
    if node.op == "ResourceGather":
        _freeze_gather(result, node, constants)
        return
    reader = _copy(result, node, keep=("Tindices", "out_type", "_class"))
    reader.attr["Tparams" if node.op == "ResourceGatherNd" else "T"].type = dtype


def _copy(result: Any, node: Any, keep: Iterable[str]) -> Any:
    copy = result.node.add(
        name=node.name, op=_READERS[node.op], device=node.device, input=node.input
    )
    for key in keep:
        if key in node.attr:
            copy.attr[key].CopyFrom(node.attr[key])
    return copy


def _freeze_gather(result: Any, node: Any, constants: Collection[str]) -> None:
    """A gather from a variable becomes a gather from the constant, along axis 0."""
    axis = result.node.add(name=f"{node.name}/axis", op="Const", device=node.device)
    if _producer(node.input[0]) not in constants:  # the axis belongs to the loop of the gather
        axis.input.append(f"^{_producer(node.input[0])}")
    axis.attr["dtype"].type = int32.as_datatype_enum
    batch_dims = node.attr["batch_dims"].i
    content = make_tensor_proto(batch_dims, int32).SerializeToString()
    axis.attr["value"].tensor.MergeFromString(content)
    gather = _copy(result, node, keep=("Tindices", "batch_dims", "_class"))
    controls = gather.input[2:]
    del gather.input[2:]
    gather.input.extend([axis.name, *controls])
    gather.attr["Tparams"].type = node.attr["dtype"].type
    gather.attr["Taxis"].type = int32.as_datatype_enum


def _check_reads_only(node: Any, denoted: Mapping[str, str]) -> None:
    """Refuses a node that needs a converted variable itself."""
    op_def = registered_ops().get(node.op)
    if op_def is None:
        return
    for argument, text in zip(op_def.inputs, node.input):
        by_handle = argument.dtype is not None and argument.dtype.name == "resource"
        if (argument.is_ref or by_handle) and _producer(text) in denoted:
            raise ValueError(
                f"{node.name!r} ({node.op}) needs the variable {denoted[_producer(text)]!r} "
                "itself, not its value: the outputs of a frozen graph cannot depend on it. Choose "
                "outputs that only read variables, or keep this one (variable_names_blacklist)."
            )


# Removing what only training needs --------------------------------------------------------------


def remove_training_nodes(input_graph: Any, protected_nodes: Collection[str] | None = None) -> Any:
    """``input_graph`` without ``CheckNumerics`` and ``Identity`` nodes.

    Consumers take the node's input instead. Nodes in ``protected_nodes`` stay, and so do
    identities that control edges begin or end at, since those order effects.
    """
    _check_graph_def(input_graph, "input_graph")
    protected = set(protected_nodes or ())
    ordering: set[str] = set()
    for node in input_graph.node:
        waits = [text for text in node.input if text.startswith("^")]
        ordering.update(map(_producer, waits))
        if waits:
            ordering.add(node.name)
    spliced: dict[str, str] = {}
    for node in input_graph.node:
        if node.name in protected or not node.input:
            continue
        if node.op == "CheckNumerics" or (node.op == "Identity" and node.name not in ordering):
            spliced[node.name] = node.input[0]
    result = _like(input_graph)
    for node in input_graph.node:
        if node.name not in spliced:
            copy = result.node.add()
            copy.CopyFrom(node)
            del copy.input[:]
            copy.input.extend(_without(node.input, spliced))
    return result


def _without(inputs: Iterable[str], spliced: dict[str, str]) -> Iterable[str]:
    for text in inputs:
        if text.startswith("^"):
            if _producer(text) not in spliced:
                yield text
            continue
        passed: set[str] = set()
        while (name := _producer(text)) in spliced:
            if name in passed:
                raise ValueError(f"The GraphDef has a cycle through {name!r}.")
            passed.add(name)
            text = spliced[name]
        yield text


def tensor_shape_from_node_def_name(graph: Any, input_name: str) -> TensorShape:
    """The static shape of a tensor, by the name that a node's input has: ``"x"`` or ``"x:1"``."""
    name = input_name if ":" in input_name else f"{input_name}:0"
    return graph.get_tensor_by_name(name.removeprefix("^")).get_shape()


__all__ = [
    "convert_variables_to_constants",
    "extract_sub_graph",
    "import_graph_def",
    "must_run_on_cpu",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]


def __dir__() -> list[str]:
    return __all__
