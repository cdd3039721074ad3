"""``tf.io``: files."""

from runnel import gfile
from runnel.graph_io import write_graph

__all__ = ["gfile", "write_graph"]


def __dir__() -> list[str]:
    return __all__
