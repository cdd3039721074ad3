"""``tf.io``: files."""

from runnel.graph_io import write_graph

__all__ = ["write_graph"]
