"""Graphs in files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from runnel.checkpoint.whole_file import write_whole
from runnel.graph.graph import Graph
from runnel.graph.serialized_message import FEWER_CONSTANTS, serialized_message


def write_graph(
    graph_or_graph_def: Any, logdir: str | os.PathLike[str], name: str, as_text: bool = True
) -> str:
    """Writes a graph (or ``GraphDef``) to the file ``name`` in ``logdir``; returns its path.

    ``as_text`` chooses the readable form of protocol buffers, else the binary one. The file
    appears complete or not at all.

    Example:
        >>> tf.io.write_graph(sess.graph, "/tmp/model", "train.pbtxt")
        '/tmp/model/train.pbtxt'
    """
    if isinstance(graph_or_graph_def, Graph):
        graph_def = graph_or_graph_def.as_graph_def()
    else:
        graph_def = graph_or_graph_def
    if not hasattr(graph_def, "SerializeToString"):
        raise TypeError(f"Expected a Graph or a GraphDef, not {type(graph_def).__name__}.")
    if as_text:
        from google.protobuf import text_format

        content = text_format.MessageToString(graph_def).encode()
    else:
        content = serialized_message(graph_def, "The GraphDef", FEWER_CONSTANTS)
    path = Path(logdir) / name
    write_whole(path, content)
    return str(path)
