"""``tf.io``: files."""

from runnel.graph_io import write_graph

__all__ = ["write_graph"]


def __dir__() -> list[str]:
    return __all__
