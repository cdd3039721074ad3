"""Producers: queues of names, numbers or slices, filled again and again, epoch by epoch."""

from __future__ import annotations

from typing import Any

from runnel.graph import dtypes
from runnel.graph.collections import GraphKeys
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import shape, size
from runnel.ops.assign import count_up_to
from runnel.ops.checks import Assert
from runnel.ops.comparison import greater
from runnel.ops.constants import constant
from runnel.ops.control import identity
from runnel.ops.files import matching_files
from runnel.ops.gather import gather
from runnel.ops.queues.queues import FIFOQueue, QueueBase
from runnel.ops.ranges import range as range_of
from runnel.ops.sampling.random import random_shuffle
from runnel.train.queue_runner import QueueRunner, add_queue_runner
from runnel.train.queue_summaries import summarize_fullness
from runnel.variables.variable import Variable


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Tensor:
    """``tensor``, ``num_epochs`` times; then an OutOfRangeError. None: without end.

    The count is a local variable: run ``tf.local_variables_initializer()``.

    Example:
        >>> three_times = tf.train.limit_epochs(x, 3)
    """
    if num_epochs is None:
        return convert_to_tensor(tensor)
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        epochs = Variable(
            constant(0, dtypes.int64),
            name="epochs",
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )
        with control_dependencies([count_up_to(epochs, num_epochs)]):
            return identity(tensor, name=scope)


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A local variable with the names of the files that match ``pattern`` when it is initialized.

    Example:
        >>> names = tf.train.string_input_producer(tf.train.match_filenames_once("/data/*.csv"))
    """
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        return Variable(
            matching_files(pattern),
            name=scope,
            trainable=False,
            validate_shape=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """A queue of the rows of ``input_tensor``, with a runner that fills it, epoch after epoch.

    With ``shuffle``, every epoch has an order of its own. ``summary_name`` adds a summary of how
    full the queue is.

    Example:
        >>> row = tf.train.input_producer(table, num_epochs=2).dequeue()
    """
    with name_scope(name, "input_producer", [input_tensor]):
        tensor = convert_to_tensor(input_tensor, name="input_tensor")
        rows = tensor.get_shape()[1:].merge_with(element_shape)
        if not rows.is_fully_defined():
            raise ValueError(
                f"The rows of input_tensor must have a known shape, not {rows}; give element_shape"
            )
        if shuffle:
            tensor = random_shuffle(tensor, seed=seed)
        tensor = limit_epochs(tensor, num_epochs)
        queue = FIFOQueue(
            capacity, [tensor.dtype.base_dtype], [rows], shared_name=shared_name, name=name
        )
        fill = queue.enqueue_many([tensor])
        add_queue_runner(QueueRunner(queue, [fill], cancel_op=cancel_op))
        if summary_name is not None:
            summarize_fullness(summary_name, queue, capacity)
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """A queue of strings, such as the names of files; see :func:`input_producer`.

    Example:
        >>> names = tf.train.string_input_producer(["a.tfrecord", "b.tfrecord"], num_epochs=10)
    """
    message = "string_input_producer requires a non-null input tensor"
    if isinstance(string_tensor, list | tuple) and not string_tensor:
        raise ValueError(message)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, dtypes.string)
        with control_dependencies([Assert(greater(size(strings), 0), [message])]):
            strings = identity(strings)
        return input_producer(
            strings,
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            f"fraction_of_{capacity}_full",
            scope,
            cancel_op,
        )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """A queue of the numbers from 0 to ``limit - 1``; see :func:`input_producer`."""
    with name_scope(name, "input_producer", [limit]) as scope:
        return input_producer(
            range_of(limit),
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            f"fraction_of_{capacity}_full",
            scope,
        )


def slice_input_producer(
    tensor_list: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One row of each tensor at a time, the same row of all; see :func:`input_producer`.

    Example:
        >>> image, label = tf.train.slice_input_producer([images, labels], num_epochs=5)
    """
    with name_scope(name, "input_producer", list(tensor_list)):
        tensors = [convert_to_tensor(t) for t in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        queue = range_input_producer(
            shape(tensors[0])[0], num_epochs, shuffle, seed, capacity, shared_name
        )
        index = queue.dequeue()
        return [gather(tensor, index) for tensor in tensors]
