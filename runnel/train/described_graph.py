"""A graph's ``MetaGraphDef``, as checkpoints have it beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runnel.checkpoint.whole_file import write_whole
from runnel.graph.graph import Graph
from runnel.graph.serialized_message import FEWER_CONSTANTS, serialized_message

_MOST_KEPT = 64 << 20
"""A description of more bytes, which has large constants, is made anew for each checkpoint."""


class DescribedGraph:
    """What a Saver writes of a graph.

    One that may still grow is described at once. A final one is described when it is first
    written, by whichever thread does so, and need not be again.
    """

    def __init__(self, graph: Graph, saver_def: Any, strip_default_attrs: bool) -> None:
        self._graph = graph
        self._saver_def = saver_def
        self._strips = strip_default_attrs
        self._is_final = graph.finalized
        self._content: bytes | None = None if self._is_final else self._describe()

    def still_describes(self, graph: Graph, strip_default_attrs: bool) -> bool:
        """True when another would have the same content."""
        return self._is_final and graph is self._graph and strip_default_attrs == self._strips

    def write(self, filename: str) -> None:
        """Writes the file; it appears whole."""
        content = self._content
        if content is None:
            content = self._describe()
            if self._is_final and len(content) <= _MOST_KEPT:
                self._content = content
        write_whole(Path(filename), content)

    def _describe(self) -> bytes:
        from runnel.train.meta_graph import export_meta_graph

        described = export_meta_graph(
            graph=self._graph, saver_def=self._saver_def, strip_default_attrs=self._strips
        )
        return serialized_message(described, "The MetaGraphDef", FEWER_CONSTANTS)
