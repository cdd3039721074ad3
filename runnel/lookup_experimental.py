"""``tf.lookup.experimental``: tables that steps change."""

from runnel.ops.lookup.mutable_tables import DenseHashTable

__all__ = ["DenseHashTable"]


def __dir__() -> list[str]:
    return __all__
