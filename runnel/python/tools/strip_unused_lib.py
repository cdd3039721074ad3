"""Cuts a graph down to what its outputs need of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import text_format

from runnel import gfile
from runnel.graph.dtypes import as_dtype
from runnel.graph_util import extract_sub_graph
from runnel.python.tools.graph_files import read_graph

__all__ = ["strip_unused", "strip_unused_from_files"]


def strip_unused(
    input_graph_def: Any,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: Any,
) -> Any:
    """The part of a graph between its inputs, which become placeholders, and its outputs.

    ``placeholder_type_enum`` is a type, or one for each input.
    """
    for name in input_node_names:
        if ":" in name:
            raise ValueError(
                f"Name '{name}' appears to refer to a Tensor, not an Operation: write "
                f"{name.partition(':')[0]!r}."
            )
    missing = set(input_node_names) - {node.name for node in input_graph_def.node}
    if missing:
        raise ValueError(f"The following input nodes were not found: {missing}")
    if isinstance(placeholder_type_enum, list):
        types = dict(zip(input_node_names, placeholder_type_enum, strict=True))
    else:
        types = dict.fromkeys(input_node_names, placeholder_type_enum)
    cut = type(input_graph_def)()
    for node in input_graph_def.node:
        if node.name not in types:
            cut.node.add().CopyFrom(node)
            continue
        placeholder = cut.node.add(op="Placeholder", name=node.name)
        placeholder.attr["dtype"].type = as_dtype(types[node.name]).as_datatype_enum
        for known in ("_output_shapes", "shape"):
            if known in node.attr:
                placeholder.attr[known].CopyFrom(node.attr[known])
    cut.library.CopyFrom(input_graph_def.library)
    cut.versions.CopyFrom(input_graph_def.versions)
    return extract_sub_graph(cut, list(output_node_names))


def strip_unused_from_files(
    input_graph: str,
    input_binary: bool,
    output_graph: str,
    output_binary: bool,
    input_node_names: str,
    output_node_names: str,
    placeholder_type_enum: Any,
) -> None:
    """:func:`strip_unused` from a file to another; names have commas between them."""
    if not output_node_names:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    stripped = strip_unused(
        read_graph(input_graph, input_binary),
        input_node_names.split(","),
        output_node_names.split(","),
        placeholder_type_enum,
    )
    if output_binary:
        content = stripped.SerializeToString()
    else:
        content = text_format.MessageToString(stripped).encode()
    with gfile.GFile(output_graph, "wb") as file:
        file.write(content)
