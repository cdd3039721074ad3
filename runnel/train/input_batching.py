"""Batches made by a queue in the background: ``tf.train.batch`` and its kin.

Each adds a queue, a runner that fills it with single examples, and returns what takes batches out.
Examples are a tensor, a list of tensors, or a dictionary of them; batches come in the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.control_flow.conditional import cond
from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import reshape
from runnel.ops.control import group, no_op
from runnel.ops.gather import gather
from runnel.ops.queues.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from runnel.ops.selection import where
from runnel.train.queue_runner import QueueRunner, add_queue_runner
from runnel.train.queue_summaries import summarize_fullness, summarize_surplus
from runnel.train.queued_components import as_list, restored, sparse_or_none, stored

MakeQueue = Callable[[list[Any], list[Any]], QueueBase]
Summarize = Callable[[QueueBase], None]


def batch(
    tensors: Any,
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of ``tensors``, which are one example, or several with ``enqueue_many``.

    ``dynamic_pad`` pads examples of different sizes. ``num_threads`` threads compute examples; with
    more than one their order is not defined.

    Example:
        >>> image, label = tf.train.slice_input_producer([images, labels])
        >>> image_batch, label_batch = tf.train.batch([image, label], batch_size=32)
    """
    return maybe_batch(
        tensors,
        True,
        batch_size,
        num_threads,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like :func:`batch`, of those examples for which ``keep_input`` is true."""
    return _batches(
        [tensors] * num_threads,
        "batch",
        keep_input,
        batch_size,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
        _first_in_first_out(capacity, dynamic_pad, shared_name),
    )


def batch_join(
    tensors_list: Any,
    batch_size: int,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like :func:`batch`, of examples from several sources, each with a thread of its own.

    Example:
        >>> examples = [read_and_decode(file) for file in files]
        >>> image_batch, label_batch = tf.train.batch_join(examples, batch_size=32)
    """
    return maybe_batch_join(
        tensors_list,
        True,
        batch_size,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch_join(
    tensors_list: Any,
    keep_input: Any,
    batch_size: int,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like :func:`batch_join`, of those examples for which ``keep_input`` is true."""
    return _batches(
        list(tensors_list),
        "batch_join",
        keep_input,
        batch_size,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
        _first_in_first_out(capacity, dynamic_pad, shared_name),
    )


def shuffle_batch(
    tensors: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of ``tensors`` in random order, mixed among ``min_after_dequeue`` examples.

    Example:
        >>> image_batch, label_batch = tf.train.shuffle_batch(
        ...     [image, label], batch_size=32, capacity=2000, min_after_dequeue=1000
        ... )
    """
    return maybe_shuffle_batch(
        tensors,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        num_threads,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like :func:`shuffle_batch`, of those examples for which ``keep_input`` is true."""
    return _batches(
        [tensors] * num_threads,
        "shuffle_batch",
        keep_input,
        batch_size,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
        _shuffled(capacity, min_after_dequeue, seed, shared_name),
    )


def shuffle_batch_join(
    tensors_list: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like :func:`shuffle_batch`, of examples from several sources; see :func:`batch_join`."""
    return maybe_shuffle_batch_join(
        tensors_list,
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch_join(
    tensors_list: Any,
    batch_size: int,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like :func:`shuffle_batch_join`, of those examples for which ``keep_input`` is true."""
    return _batches(
        list(tensors_list),
        "shuffle_batch_join",
        keep_input,
        batch_size,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
        _shuffled(capacity, min_after_dequeue, seed, shared_name),
    )


# What they have in common -----------------------------------------------------------------------


def _first_in_first_out(
    capacity: int, pads: bool, shared_name: str | None
) -> tuple[MakeQueue, Summarize]:
    kind = PaddingFIFOQueue if pads else FIFOQueue
    return (
        lambda types, shapes: kind(capacity, types, shapes, shared_name=shared_name),
        lambda queue: summarize_fullness(f"fraction_of_{capacity}_full", queue, capacity),
    )


def _shuffled(
    capacity: int, min_after_dequeue: int, seed: int | None, shared_name: str | None
) -> tuple[MakeQueue, Summarize]:
    if capacity <= min_after_dequeue:
        raise ValueError(
            f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}."
        )
    return (
        lambda types, shapes: RandomShuffleQueue(
            capacity, min_after_dequeue, types, shapes, seed=seed, shared_name=shared_name
        ),
        lambda queue: summarize_surplus(queue, capacity, min_after_dequeue),
    )


def _batches(
    sources: list[Any],
    default_name: str,
    keep_input: Any,
    batch_size: int,
    enqueue_many: bool,
    shapes: Any,
    smaller_final: bool,
    name: str | None,
    kind: tuple[MakeQueue, Summarize],
) -> Any:
    if not sources:
        raise ValueError("Expected at least one set of tensors to batch")
    listed = [as_list(source) for source in sources]
    make_queue, summarize = kind
    with name_scope(name, default_name, [t for t in listed[0] if isinstance(t, Tensor)]) as scope:
        sparse = [sparse_or_none(component) for component in listed[0]]
        examples = [[stored(t, enqueue_many) for t in source] for source in listed]
        if any(len(example) != len(examples[0]) for example in examples):
            raise ValueError("Every set of tensors to batch must have as many of them")
        types = [t.dtype.base_dtype for t in examples[0]]
        for example in examples[1:]:
            if [t.dtype.base_dtype for t in example] != types:
                raise TypeError("The tensors to batch must have the same types in every set")
        keep = _as_keep(keep_input, enqueue_many)
        queue = make_queue(types, _shapes(examples, shapes, enqueue_many))
        puts = [_put(queue, example, enqueue_many, keep) for example in examples]
        if all(source is sources[0] for source in sources):
            puts = [puts[0]] * len(puts)
        add_queue_runner(QueueRunner(queue, puts))
        summarize(queue)
        take = queue.dequeue_up_to if smaller_final else queue.dequeue_many
        taken = take(batch_size, name=scope)
        batches = taken if isinstance(taken, list) else [taken]
        parts = zip(batches, sparse, strict=True)
        return _like(sources[0], [restored(*part, enqueue_many) for part in parts])


def _like(original: Any, tensors: list[Any]) -> Any:
    """The batches in the form of the examples; one alone is not a list, as in TensorFlow."""
    if isinstance(original, dict):
        return dict(zip(sorted(original), tensors, strict=True))
    return tensors[0] if len(tensors) == 1 else tensors


def _as_keep(keep_input: Any, enqueue_many: bool) -> Tensor | None:
    """``keep_input`` as a tensor; None when everything is kept."""
    if keep_input is True:
        return None
    keep = convert_to_tensor(keep_input, dtypes.bool_)
    rank = keep.get_shape().ndims
    if rank is None or rank > 1:
        raise ValueError("`keep_input` must be a scalar or a vector, of known rank.")
    if rank == 1 and not enqueue_many:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    value = constant_value(keep)
    return None if rank == 0 and value is not None and bool(value) else keep


def _shapes(examples: list[list[Tensor]], shapes: Any, enqueue_many: bool) -> list[TensorShape]:
    """The shapes of one example's tensors, which all sources share."""
    if shapes is not None:
        return [TensorShape(shape) for shape in shapes]
    found = []
    for tensors in zip(*examples, strict=True):
        shape = tensors[0].get_shape()
        for tensor in tensors[1:]:
            shape = shape.most_specific_compatible_shape(tensor.get_shape())
        found.append(shape.with_rank_at_least(1)[1:] if enqueue_many else shape)
    return found


def _put(
    queue: QueueBase, example: Sequence[Tensor], enqueue_many: bool, keep: Tensor | None
) -> Operation:
    put = queue.enqueue_many if enqueue_many else queue.enqueue
    if keep is None:
        return put(list(example))
    if keep.get_shape().ndims == 1:
        kept = reshape(where(keep), [-1])
        return put([gather(tensor, kept) for tensor in example])
    return cond(keep, lambda: group(put(list(example))), no_op)
