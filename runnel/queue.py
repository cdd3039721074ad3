"""``tf.queue``: queues of tensors; beside TensorFlow's names, the barrier."""

from runnel.ops.queues import staging_ops as staging_ops  # registers its operations
from runnel.ops.queues.barriers import Barrier
from runnel.ops.queues.queues import (
    FIFOQueue,
    PaddingFIFOQueue,
    PriorityQueue,
    QueueBase,
    RandomShuffleQueue,
)

__all__ = [
    "Barrier",
    "FIFOQueue",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
]


def __dir__() -> list[str]:
    return __all__
