"""A graph as a ``GraphDef`` protocol buffer, in the form that TensorFlow writes and reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runnel.graph.attr_value import encode_attribute, kind_of_value
from runnel.graph.registry import registered_ops
from runnel.graph.shapes import TensorShape
from runnel.graph.signature import REQUIRED
from runnel.graph.tensor_proto import MAX_BYTES

if TYPE_CHECKING:
    from runnel.graph.dtypes import DType
    from runnel.graph.graph import Graph
    from runnel.graph.operation import Operation
    from runnel.graph.registry import OpDef

# The version of the GraphDef format: what TensorFlow 1.15 wrote. Later TensorFlows read it, and
# the meaning of no op here depends on a later one.
GRAPH_DEF_VERSION = 134

ORIGIN = "_origin"
"""An attribute with the name and creation site, as text, of the user's operation behind a node."""

# Attributes that TensorFlow added after 1.15: left out at their default, which is what a reader
# that does not know them does anyway, so that an older TensorFlow reads the graph too.
_LATER_ATTRIBUTES = frozenset(
    ("grad_a", "grad_b", "grad_x", "grad_y", "debug_name", "allowed_devices")
    + ("bad_indices_policy", "explicit_paddings", "exponential_avg_factor", "index_type")
    + ("allow_missing_files", "multiply_linear_by_lr", "shape_type", "metadata", "is_files")
    + ("stop_on_empty_dataset", "log_warning", "force_synchronous", "buffer_size_min")
    + ("replicate_on_split", "use_default_device", "Tsegmentids", "sparse_gradient", "Tk")
)
_LATER_OF = {("AssignVariableOp", "validate_shape"), ("InitializeTableFromTextFileV2", "offset")}
"""The same, of operations whose attribute others had before."""


def operation_to_node_def(op: Operation, add_shapes: bool = False) -> Any:
    """``op`` as a ``NodeDef``."""
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    node = NodeDef()
    _write_node(node, op, add_shapes)
    return node


def graph_to_graph_def(
    graph: Graph,
    from_version: int | None = None,
    add_shapes: bool = False,
    add_origins: bool = False,
) -> Any:
    """``graph`` as a ``GraphDef``, with its operations in the order of construction.

    ``from_version`` leaves out those that were there when ``graph.version`` had that value;
    ``add_shapes`` records the static shapes in an attribute ``_output_shapes``, ``add_origins`` the
    lines of the user's program that made each operation in an attribute ``_origin``.

    Example:
        >>> [node.op for node in tf.constant(1.0).graph.as_graph_def().node]
        ['Const']
    """
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    operations = graph.get_operations()
    _check_size(operations)
    graph_def = GraphDef()
    graph_def.versions.producer = GRAPH_DEF_VERSION
    add = graph_def.node.add
    for op in operations[from_version or 0 :]:
        node = add()
        _write_node(node, op, add_shapes)
        if add_origins:
            origin = [op.name, *op.creation_site()]
            encode_attribute(node.attr[ORIGIN], origin, "string", is_list=True)
    return graph_def


def _check_size(operations: list[Operation]) -> None:
    constants = [op for op in operations if op.op_def.name == "Const"]
    total = sum(op.attrs["value"].nbytes for op in constants if any(op.attrs["value"].strides))
    if total > MAX_BYTES:
        largest = max(constants, key=lambda op: op.attrs["value"].nbytes)
        raise ValueError(
            f"The graph's constants take {total} bytes, but a GraphDef cannot be larger than "
            f"2 GiB. The largest is {largest.name!r}, made at "
            f"{largest.creation_site()[-1].splitlines()[0]}; keep large "
            "values in variables, or feed them."
        )


def _element_type(attrs: dict[str, Any]) -> DType | None:
    """What a constant's elements mean: a qint8 and an int8 are stored alike."""
    dtype = attrs.get("dtype")
    value = attrs.get("value")
    stored_so = getattr(value, "dtype", None) == getattr(dtype, "np_dtype", "")
    return dtype if stored_so else None


def _write_node(node: Any, op: Operation, add_shapes: bool) -> None:
    inputs = [
        t.op.name if t.value_index == 0 else f"{t.op.name}:{t.value_index}" for t in op.inputs
    ]
    if op.control_inputs:
        inputs += [f"^{c.name}" for c in op.control_inputs]
    write_node(node, op.name, op.op_def, op.device, inputs, op.attrs)
    if add_shapes:
        empty = op.op_def.empty_outputs
        shapes = [TensorShape(None) if t.value_index in empty else t.shape for t in op.outputs]
        encode_attribute(node.attr["_output_shapes"], shapes, "shape", is_list=True)


def write_node(
    node: Any, name: str, op_def: OpDef, device: str, inputs: list[str], attrs: dict[str, Any]
) -> None:
    """Writes an operation into the ``NodeDef`` ``node``; ``inputs`` are as a NodeDef names them."""
    node.name = name
    node.op = op_def.name
    if device:
        node.device = device
    if inputs:
        node.input.extend(inputs)
    declared = op_def.attributes
    for key, value in attrs.items():
        attribute = declared.get(key)
        is_later = key in _LATER_ATTRIBUTES or (op_def.name, key) in _LATER_OF
        if is_later and attribute is not None and value == attribute.default:
            continue
        try:
            if attribute is not None:
                kind, is_list = attribute.kind, attribute.is_list
            else:
                kind, is_list = kind_of_value(value)
            if kind == "type" and not is_list:  # the most common, written directly
                node.attr[key].type = value.as_datatype_enum
            elif kind == "tensor":
                encode_attribute(node.attr[key], value, kind, is_list, _element_type(attrs))
            else:
                encode_attribute(node.attr[key], value, kind, is_list)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"Attribute {key!r} of {name!r} ({op_def.name}) cannot be written to a NodeDef: "
                f"{error}"
            ) from None


def strip_default_attributes(graph_def: Any) -> None:
    """Takes the attributes that have their default out of the nodes of ``graph_def``."""
    from tensorboard.compat.proto.attr_value_pb2 import AttrValue

    defaults: dict[str, dict[str, Any]] = {}
    registered = registered_ops()
    for node in graph_def.node:
        if node.op not in defaults:
            found = defaults[node.op] = {}
            op_def = registered.get(node.op)
            for key, attribute in op_def.attributes.items() if op_def is not None else ():
                if attribute.default is not REQUIRED:
                    found[key] = AttrValue()
                    encode_attribute(
                        found[key], attribute.default, attribute.kind, attribute.is_list
                    )
        for key, default in defaults[node.op].items():
            if key in node.attr and node.attr[key] == default:
                del node.attr[key]
