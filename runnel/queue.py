"""``tf.queue``: queues of tensors; beside TensorFlow's names, the barrier."""

from runnel.ops import staging_ops as staging_ops  # registers its operations
from runnel.ops.barriers import Barrier
from runnel.ops.queues import (
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
