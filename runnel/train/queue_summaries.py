"""Summaries of how full the queues of an input are: an empty one is what training waits for."""

from __future__ import annotations

from collections.abc import Sequence

from runnel.graph.dtypes import float32
from runnel.graph.operation import Tensor
from runnel.ops.arithmetic import maximum
from runnel.ops.casting import cast
from runnel.ops.queues.queues import QueueBase
from runnel.summary.summaries import scalar


def summarize_fullness(name: str, queue: QueueBase, capacity: int) -> None:
    """Adds a summary of the share of ``capacity`` that is in use."""
    scalar(name, cast(queue.size(), float32) * (1.0 / capacity))


def summarize_surplus(queue: QueueBase, capacity: int, minimum: int) -> None:
    """Adds a summary of how full a queue is beyond the ``minimum`` that always stays in it."""
    room = capacity - minimum
    surplus: Tensor = maximum(0, queue.size() - minimum)
    scalar(f"fraction_over_{minimum}_of_{room}_full", cast(surplus, float32) * (1.0 / room))


def summarize_buckets(buckets: Sequence[QueueBase], top: QueueBase, capacity: int) -> None:
    """Adds summaries of the size of each bucket, and of how full the queue of batches is."""
    for bucket in buckets:
        scalar(f"bucket/{_own_name(bucket)}/size", cast(bucket.size(), float32))
    summarize_fullness(f"bucket/{_own_name(top)}/fraction_of_{capacity}_full", top, capacity)


def _own_name(queue: QueueBase) -> str:
    """The queue's name without the scopes around it, which tags have anyway."""
    return queue.name.rsplit("/", 1)[-1]
