"""``tf.distribute.cluster_resolver``: the cluster, and which of its tasks this process is."""

from __future__ import annotations

from runnel.distribute.resolvers import (
    ClusterResolver,
    SimpleClusterResolver,
    TFConfigClusterResolver,
    UnionResolver,
)
from runnel.distribute.slurm_resolver import SlurmClusterResolver

__all__ = [
    "ClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "UnionResolver",
]


def __dir__() -> list[str]:
    return __all__
