"""``tf.version``: the version of TensorFlow whose names and meanings runnel has."""

__all__ = [
    "COMPILER_VERSION",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "VERSION",
]

VERSION = "1.15.5"
GIT_VERSION = "unknown"
COMPILER_VERSION = "XLA"
GRAPH_DEF_VERSION = 134
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0


def __dir__() -> list[str]:
    return __all__
