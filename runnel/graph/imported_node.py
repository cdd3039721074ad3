"""Reads the nodes of a ``GraphDef`` and checks them, one by one, against the registered op types.

If a node is wrong by itself (its name, op, attributes, device, or number of inputs), it raises a
ValueError that names the node, before any graph is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runnel.graph.apply import output_types
from runnel.graph.attr_value import decode_attribute, decode_unknown
from runnel.graph.device import canonical_device
from runnel.graph.dtypes import DType
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import OpDef, find_op_def, registered_ops
from runnel.graph.scopes import VALID_OP_NAME
from runnel.graph.shapes import TensorShape
from runnel.graph.signature import REQUIRED, Argument

# More outputs than this are a corrupt number rather than an operation.
_MAX_OUTPUTS = 1 << 16
_INDEX = re.compile(r"[0-9]{1,9}")
# Writers older than this could not tell a placeholder's scalar shape from an unknown one.
_SCALAR_PLACEHOLDERS_SINCE = 22

# The output ``index`` of the node ``name``.
Endpoint = tuple[str, int]


@dataclass(slots=True)
class ImportedNode:
    """A checked node: its op type and complete attributes, and the names that it refers to."""

    name: str
    op_def: OpDef
    attrs: dict[str, Any]
    inputs: list[Endpoint | Tensor]
    """Where the inputs come from: other nodes, or tensors that stand in for them."""
    expected: list[tuple[Argument, DType]]
    """For each input its argument and element type."""
    controls: list[str | Operation]
    device: str
    output_types: list[DType]
    output_shapes: list[TensorShape] | None
    """What the writer recorded of the outputs' static shapes."""

    def error(self, message: str) -> ValueError:
        return _error(self.name, self.op_def.name, message)


def _error(name: str, op_type: str, message: str) -> ValueError:
    return ValueError(f"Node {name!r} ({op_type}): {message}")


def parse_endpoint(text: str) -> Endpoint | None:
    """``"x:1"`` or ``"x"`` as a name and an index; None when it is neither."""
    name, colon, index = text.rpartition(":")
    if not colon:
        return (text, 0) if text else None
    if not name or not _INDEX.fullmatch(index):
        return None
    return name, int(index)


def read_nodes(graph_def: Any, producer_op_list: Any) -> dict[str, ImportedNode]:
    """The nodes of ``graph_def`` by name, in its order; the first mistake is a ValueError."""
    _check_names(graph_def.node)
    op_defs = _op_defs_of(graph_def)
    producer_defaults = _defaults_of(producer_op_list)
    version = graph_def.versions.producer
    nodes: dict[str, ImportedNode] = {}
    for proto in graph_def.node:
        op_type = proto.op
        try:
            nodes[proto.name] = _read(proto, op_defs[op_type], producer_defaults, version)
        except ValueError as error:
            raise _error(proto.name, op_type, str(error)) from None
    return nodes


def _check_names(protos: Any) -> None:
    seen: set[str] = set()
    for proto in protos:
        name = proto.name
        if not VALID_OP_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid name for a node: use letters, digits and _ . - / \\ >, "
                "and begin with a letter, digit or dot."
            )
        if name in seen:
            raise ValueError(f"Two nodes have the name {name!r}.")
        seen.add(name)


def _op_defs_of(graph_def: Any) -> dict[str, OpDef]:
    """The types of all nodes."""
    found: dict[str, OpDef] = {}
    missing: dict[str, list[str]] = {}
    for proto in graph_def.node:
        op_type = proto.op
        if op_type in found:
            continue
        op_def = find_op_def(op_type)
        if op_def is None:
            missing.setdefault(op_type, []).append(proto.name)
        else:
            found[op_type] = op_def
    if not missing:
        return found
    import difflib

    lines = []
    for op_type, names in sorted(missing.items()):
        line = f"  {op_type!r}, of node {names[0]!r}"
        if len(names) > 1:
            line += f" and {len(names) - 1} more"
        if close := difflib.get_close_matches(op_type, registered_ops(), n=3):
            line += f": did you mean {' or '.join(close)}?"
        lines.append(line)
    raise ValueError(
        "The GraphDef has operations that are not registered (runnel.register_op adds one):\n"
        + "\n".join(lines)
    )


def _defaults_of(op_list: Any) -> dict[str, dict[str, Any]]:
    if op_list is None:
        return {}
    return {
        op.name: {a.name: a.default_value for a in op.attr if a.HasField("default_value")}
        for op in op_list.op
    }


def _read(
    proto: Any, op_def: OpDef, producer_defaults: dict[str, dict[str, Any]], version: int
) -> ImportedNode:
    attrs = _read_attributes(proto, op_def, producer_defaults)
    if op_def.name == "Placeholder" and version < _SCALAR_PLACEHOLDERS_SINCE:
        if attrs["shape"].rank == 0:
            attrs["shape"] = TensorShape(None)
    inputs, controls = _read_inputs(proto.input)
    device = proto.device
    if device:
        device = canonical_device(device)
    shapes = attrs.pop("_output_shapes", None)
    return ImportedNode(
        proto.name,
        op_def,
        attrs,
        inputs,
        _expected_inputs(op_def, attrs, len(inputs)),
        controls,
        device,
        _output_types(op_def, attrs),
        _checked_shapes(shapes),
    )


def _read_attributes(
    proto: Any, op_def: OpDef, producer_defaults: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    given = proto.attr
    attrs: dict[str, Any] = {}
    for name, attribute in op_def.attributes.items():
        if name in given:
            attrs[name] = decode_attribute(given[name], attribute, op_def.name)
        elif attribute.default is not REQUIRED:
            attrs[name] = attribute.default
        else:
            raise ValueError(f"the attribute {name!r} is missing")
    for name in sorted(key for key in given if key not in op_def.attributes):
        if name.startswith("_"):
            try:
                attrs[name] = decode_unknown(given[name])
            except ValueError as error:
                raise ValueError(f"attribute {name!r}: {error}") from None
            continue
        # A newer writer's attribute means nothing new while it has that writer's default.
        default = producer_defaults.get(op_def.name, {}).get(name)
        if default is None or default != given[name]:
            known = ", ".join(op_def.attributes) or "none"
            raise ValueError(
                f"there is no attribute {name!r} (there are: {known}). If a newer version wrote "
                "this graph, give its producer_op_list: attributes at their default are dropped."
            )
    if op_def.name == "Const" and given["value"].tensor.dtype != given["dtype"].type:
        raise ValueError(
            f"attribute 'dtype' is {attrs['dtype'].name}, but the value is of another type "
            f"({given['value'].tensor.dtype})"
        )
    return attrs


def _read_inputs(
    texts: Iterable[str],
) -> tuple[list[Endpoint | Tensor], list[str | Operation]]:
    inputs: list[Endpoint | Tensor] = []
    controls: list[str | Operation] = []
    for text in texts:
        if text.startswith("^"):
            if text[1:] not in controls:
                controls.append(text[1:])
            continue
        if controls:
            raise ValueError(f"the input {text!r} stands after a control input")
        endpoint = parse_endpoint(text)
        if endpoint is None:
            raise ValueError(f"the input {text!r} is not of the form 'name', 'name:1' or '^name'")
        inputs.append(endpoint)
    return inputs, controls


def _count(argument: Argument, attrs: dict[str, Any]) -> int:
    if argument.type_list_attr is not None:
        return len(attrs[argument.type_list_attr])
    if argument.number_attr is None:
        return 1
    count = attrs[argument.number_attr]
    if count < 0:
        raise ValueError(f"attribute {argument.number_attr!r} is {count}, which is no length")
    return count


def _expected_inputs(
    op_def: OpDef, attrs: dict[str, Any], given: int
) -> list[tuple[Argument, DType]]:
    wanted = sum(_count(argument, attrs) for argument in op_def.inputs)
    if wanted != given:
        names = ", ".join(a.name for a in op_def.inputs) or "none"
        raise ValueError(f"it takes {wanted} inputs ({names}), but {given} are given")
    expected: list[tuple[Argument, DType]] = []
    for argument in op_def.inputs:
        if argument.type_list_attr is not None:
            expected += [(argument, dtype) for dtype in attrs[argument.type_list_attr]]
        else:
            dtype = argument.dtype or attrs[argument.type_attr or ""]
            expected += [(argument, dtype)] * _count(argument, attrs)
    return expected


def _output_types(op_def: OpDef, attrs: dict[str, Any]) -> list[DType]:
    count = sum(_count(argument, attrs) for argument in op_def.outputs)
    if count > _MAX_OUTPUTS:
        raise ValueError(f"it would have {count} outputs; {_MAX_OUTPUTS} are the most supported")
    return output_types(op_def, attrs)


def _checked_shapes(shapes: Any) -> list[TensorShape] | None:
    if shapes is None:
        return None
    if not isinstance(shapes, list) or not all(isinstance(s, TensorShape) for s in shapes):
        raise ValueError("attribute '_output_shapes' must be a list of shapes")
    return shapes
