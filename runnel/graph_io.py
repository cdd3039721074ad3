"""Graphs in files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from runnel.graph.graph import Graph


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
        content = graph_def.SerializeToString()
    path = Path(logdir) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return str(path)


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that appears complete or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp's files are private
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
