"""Batches of examples that are alike, or of which some are left out: ``tf.contrib.training``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.control_flow.conditional import case, cond
from runnel.graph import dtypes
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import CancelledError, OutOfRangeError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.registry import get_op_def
from runnel.graph.shapes import TensorShape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.array_shape import squeeze
from runnel.ops.assertions import assert_less_equal
from runnel.ops.casting import cast
from runnel.ops.control import group, no_op, with_dependencies
from runnel.ops.gather import gather
from runnel.ops.one_hot import one_hot
from runnel.ops.queues.queues import FIFOQueue, PaddingFIFOQueue
from runnel.ops.reduce_functions import reduce_max, reduce_min, reduce_sum
from runnel.ops.sampling.random import random_uniform
from runnel.ops.selection import where
from runnel.train.input_batching import maybe_batch
from runnel.train.queue_runner import QueueRunner, add_queue_runner
from runnel.train.queue_summaries import summarize_buckets
from runnel.train.queued_components import as_list, restored, sparse_or_none, stored
from runnel.variables.get_variable import get_variable
from runnel.variables.variable_scope import variable_scope

_ENDS = (OutOfRangeError, CancelledError)


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: int | Sequence[int],
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """The number of a bucket, and a batch of examples that went into it.

    Each example goes into the bucket ``which_bucket``; a bucket with ``batch_size`` of them (a
    number, or one for each bucket) becomes a batch. ``dynamic_pad`` pads the examples of a batch.

    Example:
        >>> which, batch = tf.contrib.training.bucket([words], tf.size(words) // 10, 32, 5)
    """
    listed = as_list(tensors)
    sizes = [batch_size] * num_buckets if isinstance(batch_size, int) else list(batch_size)
    if len(sizes) != num_buckets:
        raise ValueError("If batch_size is a list it must have num_buckets elements")
    limits = list(bucket_capacities or [capacity] * num_buckets)
    if len(limits) != num_buckets:
        raise ValueError("The list bucket_capacities must have exactly num_buckets elements")
    with name_scope(name, "bucket", [one for one in listed if isinstance(one, Tensor)]):
        sparse = [sparse_or_none(one) for one in listed]
        values = [stored(one) for one in listed]
        types = [value.dtype.base_dtype for value in values]
        known = [TensorShape(s) for s in shapes] if shapes else [v.get_shape() for v in values]
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queues = [
            kind(limit, types, known, shared_name=_shared(shared_name, i), name=f"bucket_queue_{i}")
            for i, limit in enumerate(limits)
        ]
        rows = sizes[0] if len(set(sizes)) == 1 and not allow_smaller_final_batch else None
        whole = rows is not None and all(shape.is_fully_defined() for shape in known)
        batched = [TensorShape([rows]).concatenate(shape) for shape in known] if whole else None
        top = FIFOQueue(
            capacity,
            [dtypes.int32, *types],
            None if batched is None else [TensorShape([]), *batched],
            shared_name=_shared(shared_name, "top"),
            name="top_queue",
        )
        _fill(
            queues, values, convert_to_tensor(which_bucket, dtypes.int32), keep_input, num_threads
        )
        moves = []
        for i, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
            take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
            taken = take(size)
            parts = taken if isinstance(taken, list) else [taken]
            moves.append(top.enqueue([np.int32(i), *parts]))
        add_queue_runner(QueueRunner(top, moves, queue_closed_exception_types=_ENDS))
        summarize_buckets(queues, top, capacity)
        number, *batch = top.dequeue()
        for part, shape in zip(batch, known, strict=True):
            if shape.ndims is not None:
                sized = [None if dynamic_pad else d for d in shape.as_list()]
                part.set_shape([rows, *sized])
        whole_batch = [restored(*part) for part in zip(batch, sparse, strict=True)]
        return number, _like(tensors, whole_batch)


def _shared(name: str | None, which: Any) -> str | None:
    return None if name is None else f"{name}_{which}"


def _fill(
    queues: list[Any], values: list[Tensor], which: Tensor, keep_input: Any, threads: int
) -> None:
    """Has threads put examples into the buckets."""

    def put(queue: Any) -> Callable[[], Any]:
        return lambda: group(queue.enqueue(values))

    def into_bucket() -> Operation:
        pairs = [
            (get_op_def("Equal")(which, np.int32(i)), put(queue)) for i, queue in enumerate(queues)
        ]
        return case(pairs, exclusive=True)

    keep = convert_to_tensor(keep_input, dtypes.bool_)
    enqueue = into_bucket() if keep_input is True else cond(keep, into_bucket, no_op)
    close = group(*[queue.close() for queue in queues])
    cancel = group(*[queue.close(cancel_pending_enqueues=True) for queue in queues])
    add_queue_runner(QueueRunner(queues[0], [enqueue] * threads, close, cancel, _ENDS))


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: int | Sequence[int],
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:
    """The lengths of examples, and a batch of them, of similar lengths.

    ``bucket_boundaries`` are the upper limits of lengths, ascending; there is one bucket more.
    """
    edges = list(bucket_boundaries)
    if not edges or any(a >= b for a, b in zip(edges, edges[1:], strict=False)):
        raise ValueError("bucket_boundaries must be a list of numbers that ascend")
    with name_scope(name, "bucket_by_sequence_length", [input_length]):
        length = cast(convert_to_tensor(input_length), dtypes.int32)
        low = np.array([np.iinfo(np.int32).min, *edges], np.int32)
        high = np.array([*edges, np.iinfo(np.int32).max], np.int32)
        inside = get_op_def("LogicalAnd")(
            get_op_def("LessEqual")(low, length), get_op_def("Less")(length, high)
        )
        which = cast(reduce_min(where(inside)), dtypes.int32)
        listed = as_list(tensors)
        _, taken = bucket(
            [length, *listed],
            which,
            batch_size,
            len(edges) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [TensorShape([]), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        return taken[0], _like(tensors, taken[1:])


def rejection_sample(
    tensors: Sequence[Any],
    accept_prob_fn: Callable[[list[Tensor]], Any],
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> Any:
    """Batches of examples, each of which is kept with the probability ``accept_prob_fn(tensors)``.

    With ``enqueue_many`` tensors are many examples: a queue of ``prebatch_capacity`` of them, which
    ``prebatch_threads`` fill, gives the function one at a time. With ``runtime_checks`` a
    probability that is none is an error. The result is a list.
    """
    with name_scope(name, "rejection_sample", list(tensors)):
        values = [convert_to_tensor(one) for one in tensors]
        if enqueue_many:
            singles = as_list(
                maybe_batch(values, True, 1, prebatch_threads, prebatch_capacity, True)
            )
            values = [squeeze(single, [0]) for single in singles]
        chance = convert_to_tensor(accept_prob_fn(values), dtypes.float32)
        if runtime_checks:
            checks = [assert_less_equal(0.0, chance), assert_less_equal(chance, 1.0)]
            chance = with_dependencies(checks, chance)
        keep = get_op_def("Less")(random_uniform([]), chance)
        return as_list(maybe_batch(values, keep, batch_size, queue_threads))


def stratified_sample(
    tensors: Sequence[Any],
    labels: Any,
    target_probs: Any,
    batch_size: int,
    init_probs: Any = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[list[Tensor], Tensor]:
    """Batches in which each label has the share ``target_probs``, and their labels.

    ``init_probs`` are the shares that labels have before; without them they are counted on the way,
    in a local variable. Examples of labels of which there are too many are left out.

    Example:
        >>> [images], labels = tf.contrib.training.stratified_sample(
        ...     [image], label, target_probs=[0.5, 0.5], batch_size=32)
    """
    with name_scope(name, "stratified_sample", [*tensors, labels]):
        values = [convert_to_tensor(one) for one in tensors]
        label = cast(convert_to_tensor(labels), dtypes.int32)
        target = cast(convert_to_tensor(target_probs), dtypes.float32)
        if init_probs is None:
            shares = _counted_shares(label, target)
        else:
            shares = cast(convert_to_tensor(init_probs), dtypes.float32)
        ratios = target / get_op_def("Maximum")(shares, np.float32(1e-12))
        chance = gather(ratios, label) / reduce_max(ratios)
        drawn = random_uniform(shape_of(chance)) if enqueue_many else random_uniform([])
        *batches, of_labels = maybe_batch(
            [*values, label],
            get_op_def("Less")(drawn, chance),
            batch_size,
            threads_per_queue,
            queue_capacity,
            enqueue_many,
        )
        return batches, of_labels


def _counted_shares(label: Tensor, target: Tensor) -> Tensor:
    """The shares of labels so far; each begins as if a few of it had been seen."""
    classes = target.get_shape().num_elements()
    if classes is None:
        raise ValueError("The number of target_probs must be known.")
    with variable_scope(None, default_name="label_counts"):
        counts = get_variable(
            "counts",
            initializer=np.full(classes, 10.0, np.float32),
            trainable=False,
            collections=["local_variables"],
        )
    seen = one_hot(label, classes, dtype=dtypes.float32)
    if seen.get_shape().ndims == 2:
        seen = reduce_sum(seen, axis=0)
    now = counts.assign_add(seen)
    return now / reduce_sum(now)


def _like(original: Any, tensors: list[Any]) -> Any:
    if isinstance(original, dict):
        return dict(zip(sorted(original), tensors, strict=True))
    return tensors
