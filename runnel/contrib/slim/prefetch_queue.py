"""``slim.prefetch_queue``: batches that are made while steps run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.ops.casting import cast
from runnel.ops.queues.queues import FIFOQueue, PaddingFIFOQueue, QueueBase
from runnel.summary import scalar
from runnel.train.queue_runner import QueueRunner, add_queue_runner

__all__ = ["prefetch_queue"]


def prefetch_queue(
    tensors: Mapping[str, Any] | Sequence[Any],
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """A queue that ``num_threads`` threads keep filled with ``tensors``, a list or a dictionary.

    Example:
        >>> images, labels = tf.train.batch([image, label], batch_size=32)
        >>> queue = slim.prefetch_queue.prefetch_queue([images, labels])
        >>> images, labels = queue.dequeue()
    """
    names = sorted(tensors) if isinstance(tensors, Mapping) else None
    given = [tensors[key] for key in names] if names else list(tensors)  # type: ignore[call-overload]
    with name_scope(name, "prefetch_queue", given):
        given = [convert_to_tensor(tensor) for tensor in given]
        queue = (PaddingFIFOQueue if dynamic_pad else FIFOQueue)(
            capacity,
            [tensor.dtype.base_dtype for tensor in given],
            [tensor.get_shape() for tensor in given],
            names=names,
            shared_name=shared_name,
        )
        entry: Any = dict(zip(names, given, strict=True)) if names else given
        add_queue_runner(QueueRunner(queue, [queue.enqueue(entry)] * num_threads))
        scalar(f"fraction_of_{capacity}_full", cast(queue.size(), "float32") * (1.0 / capacity))
        return queue


def __dir__() -> list[str]:
    return __all__
