"""``tf.contrib.cluster_resolver``: now in ``tf.distribute``."""

from runnel.distribute.cluster_resolver import (
    ClusterResolver,
    SimpleClusterResolver,
    SlurmClusterResolver,
    TFConfigClusterResolver,
)
from runnel.distribute.cluster_resolver import UnionResolver as UnionClusterResolver

__all__ = [
    "ClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "UnionClusterResolver",
]


def __dir__() -> list[str]:
    return __all__
