"""``tf.config.threading``: sizes of thread pools, which programs set and XLA decides by itself."""

from __future__ import annotations

from runnel.runtime.session import settings


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Notes a number of threads for one operation; XLA's pool has one for each core."""
    settings.default_config().intra_op_parallelism_threads = num_threads


def get_intra_op_parallelism_threads() -> int:
    """What :func:`set_intra_op_parallelism_threads` has noted; 0: nothing."""
    return int(settings.default_config().intra_op_parallelism_threads)


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Notes a number of threads for operations at the same time; a step needs none of its own."""
    settings.default_config().inter_op_parallelism_threads = num_threads


def get_inter_op_parallelism_threads() -> int:
    """What :func:`set_inter_op_parallelism_threads` has noted; 0: nothing."""
    return int(settings.default_config().inter_op_parallelism_threads)


__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]


def __dir__() -> list[str]:
    return __all__
