"""Writes a part of a step as a GraphDef, which another task reads and runs.

The nodes are in the order of the step, in which the reader runs them. With ``origins`` each has the
name and creation site of the user's operation behind it, for errors, and the known shapes of its
outputs. Feeds are ``Placeholder`` nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runnel.graph.attr_value import encode_attribute
from runnel.graph.device_set import LogicalDevice
from runnel.graph.graph_def import GRAPH_DEF_VERSION, ORIGIN, write_node
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import get_op_def
from runnel.graph.shapes import TensorShape
from runnel.ops.data.function_ops import functions_of
from runnel.passes.placement.partition import Part, partition
from runnel.passes.program.program import Node, Program


@dataclass(frozen=True, slots=True)
class PartGraph:
    """A written part, and the names in it of the tensors that are fed and fetched."""

    graph_def: Any
    feeds: dict[Tensor, str] = field(default_factory=dict)
    fetches: dict[int, str] = field(default_factory=dict)
    """By value number."""


FUNCTION_BODY = "_function_body"
"""The attribute of nodes that are there for a dataset's functions only; the part runs none."""


def _add_functions(graph_def: Any, part: Part, written: set[str]) -> None:
    """Adds what the functions of the part's datasets are made of, which no edge leads to."""
    left = [node.op for node in part.program.nodes]
    seen: set[Operation] = set()
    while left:
        for function in functions_of(left.pop()):
            inner = [tensor.op for tensor in (*function.outputs, *function.arguments)]
            while inner:
                op = inner.pop()
                if op in seen:
                    continue
                seen.add(op)
                left.append(op)
                inner += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
                if op.name not in written:
                    written.add(op.name)
                    attrs = {key: value for key, value in op.attrs.items() if key != "_class"}
                    inputs = [_input_text(tensor) for tensor in op.inputs]
                    inputs += [f"^{control.name}" for control in op.control_inputs]
                    attrs[FUNCTION_BODY] = True
                    write_node(graph_def.node.add(), op.name, op.op_def, "", inputs, attrs)


def _input_text(tensor: Tensor) -> str:
    index = tensor.value_index
    return tensor.op.name if index == 0 else f"{tensor.op.name}:{index}"


def part_graph(
    part: Part, graph_def: Any = None, origins: bool = True, device: str = ""
) -> PartGraph:
    """Writes ``part``, into ``graph_def`` if it is given; placeholders are on ``device``."""
    if graph_def is None:
        from tensorboard.compat.proto.graph_pb2 import GraphDef

        graph_def = GraphDef()
    graph_def.versions.producer = GRAPH_DEF_VERSION
    found = PartGraph(graph_def)
    names = {node: part.name_of.get(node, node.op.name) for node in part.program.nodes}
    text_of: dict[int, str] = {}
    taken = set(names.values())
    for tensor, value in part.program.feeds.items():
        op, index = tensor.op, tensor.value_index
        # Its own name, unless the operation is there for another of its outputs.
        name = op.name if index == 0 and op.name not in taken else f"{op.name}/fed_{index}"
        text_of[value] = name
        found.feeds[tensor] = f"{name}:0"
        attrs = {"dtype": tensor.dtype.base_dtype, "shape": tensor.shape}
        write_node(graph_def.node.add(), name, get_op_def("Placeholder"), device, [], attrs)
    for node, name in names.items():
        for index, value in enumerate(node.outputs):
            text_of[value] = name if index == 0 else f"{name}:{index}"
    for node, name in names.items():
        inputs = [text_of[value] for value in node.inputs]
        inputs += [f"^{names[control]}" for control in node.control]
        # What an operation was placed with may be in no graph, if it is fed.
        attrs = {key: value for key, value in node.attrs.items() if key != "_class"}
        if origins:
            attrs[ORIGIN] = [node.op.origin, *node.op.creation_site()]
        written = graph_def.node.add()
        write_node(written, name, node.op_def, part.device_of[node].name, inputs, attrs)
        if origins:
            shapes = [TensorShape(part.program.infos[value].dims) for value in node.outputs]
            encode_attribute(written.attr["_output_shapes"], shapes, "shape", is_list=True)
    _add_functions(graph_def, part, taken | set(text_of.values()))
    for value in part.program.fetches:
        name, _, index = text_of[value].partition(":")
        found.fetches[value] = f"{name}:{index or 0}"
    return found


def add_device_graphs(
    program: Program, device_of: Mapping[Node, LogicalDevice], host: LogicalDevice, metadata: Any
) -> None:
    """Adds a graph for each device that has something to run to a ``RunMetadata``."""
    for part in partition(program, device_of, host=host).parts.values():
        part_graph(part, metadata.partition_graphs.add(), False, host.name)
