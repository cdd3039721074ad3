"""Long sequences in pieces, each with the state that the piece before it has left.

``tf.contrib.training.SequenceQueueingStateSaver``: truncated backpropagation over sequences of any
length, many of them side by side. The pieces of a sequence go into a barrier at once, all but the
first without their states; whoever has computed a piece puts its last states in for the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32, int64, string
from runnel.graph.errors import CancelledError, OutOfRangeError
from runnel.graph.graph import control_dependencies, name_scope
from runnel.graph.operation import Operation, Tensor
from runnel.graph.shapes import TensorShape
from runnel.graph.sparse_tensor import SparseTensor, is_sparse
from runnel.ops.arithmetic import maximum, minimum
from runnel.ops.array_shape import expand_dims, reshape
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.casting import cast
from runnel.ops.checks import Assert
from runnel.ops.comparison import equal, greater_equal, not_equal
from runnel.ops.control import group, identity
from runnel.ops.fill import fill, ones
from runnel.ops.joining import concat
from runnel.ops.masking import boolean_mask
from runnel.ops.padding import pad as padded
from runnel.ops.padding import tile
from runnel.ops.queues.barriers import Barrier
from runnel.ops.queues.queues import FIFOQueue
from runnel.ops.ranges import range as range_of
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.sampling.random import random_uniform
from runnel.ops.sparse.arranging import sparse_reshape
from runnel.ops.string_join import string_join
from runnel.ops.strings.conversions import as_string
from runnel.train.queue_runner import QueueRunner, add_queue_runner
from runnel.train.queued_components import restored, sparse_or_none, stored

# Components of an element that every saver has, before sequences, context and states.
_FIXED = {
    "next_key": string,
    "length": int32,
    "total_length": int32,
    "sequence": int32,
    "sequence_count": int32,
}


class NextQueuedSequenceBatch:
    """A batch of pieces of sequences; each of its tensors has a row for each piece."""

    def __init__(self, saver: SequenceQueueingStateSaver) -> None:
        self._saver = saver
        self._places, self._keys, self._values = saver._taken()
        self._sequences = {
            name: saver._restored(f"sequences/{name}", self._values) for name in saver._sequences
        }
        self._context = {
            name: saver._restored(f"context/{name}", self._values) for name in saver._context
        }

    @property
    def batch_size(self) -> Tensor:
        """How many pieces there are: fewer than asked for only at the end."""
        return shape_of(self._keys)[0]

    @property
    def key(self) -> Tensor:
        """The names of the pieces: their places in their sequences, and the sequences' keys."""
        return self._keys

    @property
    def next_key(self) -> Tensor:
        """The names of the pieces that follow; "STOP:" and the key after a last one."""
        return self._values["next_key"]

    @property
    def insertion_index(self) -> Tensor:
        """The places of the sequences in the order in which they came."""
        return self._places

    @property
    def length(self) -> Tensor:
        """How many steps of the pieces are of their sequences; the others were padded."""
        return self._values["length"]

    @property
    def total_length(self) -> Tensor:
        """The lengths of the sequences."""
        return self._values["total_length"]

    @property
    def sequence(self) -> Tensor:
        """The numbers of the pieces in their sequences."""
        return self._values["sequence"]

    @property
    def sequence_count(self) -> Tensor:
        """How many pieces the sequences have."""
        return self._values["sequence_count"]

    @property
    def sequences(self) -> dict[str, Any]:
        """The pieces by name, ``[batch, num_unroll, ...]``; sparse where sequences were."""
        return dict(self._sequences)

    @property
    def context(self) -> dict[str, Any]:
        """What holds for whole sequences, by name; sparse where it was given so."""
        return dict(self._context)

    def state(self, state_name: str) -> Tensor:
        """What the pieces before have left under a name, or the initial state."""
        return self._values[self._saver._state_component(state_name)]

    def save_state(self, state_name: str, value: Any, name: str | None = None) -> Operation:
        """Keeps a state for the pieces that follow.

        Every state must be saved in every step: a piece is given out when it has all of its own.
        """
        with name_scope(name, "SaveState", [value]):
            goes_on = not_equal(self.sequence + 1, self.sequence_count)
            return self._saver.barrier.insert_many(
                self._saver._component(self._saver._state_component(state_name)),
                boolean_mask(self.next_key, goes_on),
                boolean_mask(convert_to_tensor(value), goes_on),
            )


class SequenceQueueingStateSaver:
    """Cuts sequences into pieces of ``num_unroll`` steps, and gives out batches of these.

    ``prefetch_op`` takes one sequence: ``input_key`` names it, ``input_length`` says how many steps
    of the ``input_sequences`` (tensors by name, equally long, a multiple of ``num_unroll``) count,
    ``input_context`` is given with each of its pieces, and ``initial_states`` with the first. All
    but states may be sparse: a queue keeps strings of a sparse context or of each sparse step. At
    most ``capacity`` sequences are held; ``allow_small_batch`` lets the last batch be smaller.

    Example:
        >>> saver = tf.contrib.training.SequenceQueueingStateSaver(
        ...     2, 10, length, key, {"words": words}, {}, {"lstm": tf.zeros([64])}, capacity=8)
        >>> batch = saver.next_batch
    """

    def __init__(
        self,
        batch_size: Any,
        num_unroll: Any,
        input_length: Any,
        input_key: Any,
        input_sequences: Mapping[str, Any],
        input_context: Mapping[str, Any] | None,
        initial_states: Mapping[str, Any],
        capacity: int | None = None,
        allow_small_batch: bool = False,
        name: str | None = None,
    ) -> None:
        if not input_sequences or not initial_states:
            raise ValueError("There must be input_sequences, and initial_states to be saved")
        if capacity is not None and isinstance(batch_size, int) and capacity < batch_size:
            raise ValueError(f"A capacity of {capacity} cannot fill batches of {batch_size}")
        with name_scope(name, "SequenceQueueingStateSaver") as scope:
            self._scope = scope
            self._unroll = num_unroll
            self._batch_size = batch_size
            self._allow_small_batch = allow_small_batch
            self._length = convert_to_tensor(input_length, int32, name="length")
            self._key = convert_to_tensor(input_key, string, name="key")
            context = input_context or {}
            self._sparse = {
                f"{kind}/{name}": value
                for kind, given in (("sequences", input_sequences), ("context", context))
                for name in given
                if (value := sparse_or_none(given[name])) is not None
            }
            self._sequences = {
                name: stored(input_sequences[name], enqueue_many=True)
                for name in sorted(input_sequences)
            }
            self._context = {name: stored(context[name]) for name in sorted(context)}
            self._states = _dense(initial_states)
            for state_name, state in self._states.items():
                if not state.get_shape().is_fully_defined():
                    raise ValueError(
                        f"The shape of the state {state_name!r} must be known, not "
                        f"{state.get_shape()}"
                    )
            types, shapes = self._components()
            self._names = list(types)
            self.barrier = Barrier(list(types.values()), shapes, name="barrier")
            self._places = None if capacity is None else FIFOQueue(capacity, [int32], [[]])
            self._prefetch_op: Operation | None = None
            self._next_batch: NextQueuedSequenceBatch | None = None

    def _components(self) -> tuple[dict[str, Any], list[TensorShape]]:
        types: dict[str, Any] = dict(_FIXED)
        shapes = [TensorShape([])] * len(_FIXED)
        unroll = TensorShape([self._unroll if isinstance(self._unroll, int) else None])
        for name, tensor in self._sequences.items():
            types[f"sequences/{name}"] = tensor.dtype
            shapes.append(unroll.concatenate(tensor.get_shape().with_rank_at_least(1)[1:]))
        for kind, tensors in (("context", self._context), ("states", self._states)):
            for name, tensor in tensors.items():
                types[f"{kind}/{name}"] = tensor.dtype
                shapes.append(tensor.get_shape())
        return types, shapes

    def _restored(self, component: str, values: dict[str, Tensor]) -> Any:
        """A component of a batch of pieces, as it is used."""
        batch, sparse = values[component], self._sparse.get(component)
        if sparse is None or component.startswith("context/"):
            return restored(batch, sparse)
        steps = restored(reshape(batch, [-1, 3]), sparse, enqueue_many=True)
        outer = cast(shape_of(batch)[:2], int64)
        return sparse_reshape(steps, concat([outer, steps.dense_shape[1:]], 0))

    def _component(self, name: str) -> int:
        return self._names.index(name)

    def _state_component(self, name: str) -> str:
        if name not in self._states:
            raise KeyError(f"There is no state {name!r}, but {', '.join(self._states)}")
        return f"states/{name}"

    @property
    def name(self) -> str:
        """The scope of the saver's operations."""
        return self._scope.rstrip("/")

    @property
    def batch_size(self) -> Any:
        """How many pieces a batch has."""
        return self._batch_size

    @property
    def num_unroll(self) -> Any:
        """How many steps a piece has."""
        return self._unroll

    @property
    def prefetch_op(self) -> Operation:
        """Takes one sequence; waits while ``capacity`` of them are held."""
        if self._prefetch_op is None:
            with name_scope(self._scope):
                self._prefetch_op = self._prefetch()
        return self._prefetch_op

    @property
    def next_batch(self) -> NextQueuedSequenceBatch:
        """A batch of pieces; each step that uses it takes another."""
        if self._next_batch is None:
            with name_scope(self._scope):
                self._next_batch = NextQueuedSequenceBatch(self)
        return self._next_batch

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Takes no more sequences; pieces that are there can still be had."""
        with name_scope(name, "Close"):
            closed = [self.barrier.close(cancel_pending_enqueues)]
            if self._places is not None:
                closed.append(self._places.close(cancel_pending_enqueues))
            return group(*closed)

    def _prefetch(self) -> Operation:
        steps = shape_of(next(iter(self._sequences.values())))[0]
        unroll = cast(convert_to_tensor(self._unroll), int32)
        fits = [
            Assert(equal(steps % unroll, 0), ["Sequences are no multiple of num_unroll:", steps]),
            Assert(greater_equal(steps, self._length), ["Sequences are shorter than their length"]),
        ]
        for name, tensor in self._sequences.items():
            same = equal(shape_of(tensor)[0], steps)
            fits.append(Assert(same, [f"The sequence {name!r} is not as long as the others"]))
        tensors = [*self._sequences.values(), *self._context.values(), *self._states.values()]
        # Nothing is put in before all of it is there: an input may come to its end meanwhile.
        with control_dependencies([*fits, self._key, self._length, *tensors]):
            first = [] if self._places is None else [self._places.enqueue(0)]
            with control_dependencies(first):
                count = identity(steps // unroll)
        pieces = range_of(count)
        number = as_string(pieces, width=5, fill="0")
        keys = string_join([number, "_of_", as_string(count, width=5, fill="0"), ":", self._key])
        last = expand_dims(string_join(["STOP:", self._key]), 0)
        values = {
            "next_key": concat([keys[1:], last], 0),
            "length": minimum(maximum(self._length - pieces * unroll, 0), unroll),
            "total_length": fill([count], self._length),
            "sequence": pieces,
            "sequence_count": fill([count], count),
        }
        for name, tensor in self._sequences.items():
            values[f"sequences/{name}"] = reshape(
                tensor, concat([[count, unroll], shape_of(tensor)[1:]], 0)
            )
        for name, tensor in self._context.items():
            times = concat([[count], ones([tensor.get_shape().ndims or 0], int32)], 0)
            values[f"context/{name}"] = tile(expand_dims(tensor, 0), times)
        inserted = [self.barrier.insert_many(0, keys, values["next_key"])]
        with control_dependencies(inserted):  # so that the pieces have one place in the order
            for name, value in values.items():
                if name != "next_key":
                    inserted.append(self.barrier.insert_many(self._component(name), keys, value))
            for name, state in self._states.items():
                component = self._component(f"states/{name}")
                initial = expand_dims(state, 0)
                inserted.append(self.barrier.insert_many(component, keys[:1], initial))
        return group(*inserted, name="prefetch")

    def _taken(self) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Places, keys and components of the next pieces."""
        places, keys, values = self.barrier.take_many(
            self._batch_size, allow_small_batch=self._allow_small_batch
        )
        found = dict(zip(self._names, values, strict=True))
        if self._places is None:
            return places, keys, found
        ended = equal(found["sequence"] + 1, found["sequence_count"])
        left = self._places.dequeue_many(reduce_sum(cast(ended, int32)))
        with control_dependencies([left]):
            return identity(places), identity(keys), {n: identity(v) for n, v in found.items()}


def _dense(states: Mapping[str, Any]) -> dict[str, Tensor]:
    for name, value in states.items():
        if is_sparse(value):
            raise TypeError(
                f"The state {name!r} is a SparseTensor; tf.sparse_tensor_to_dense makes one that "
                "can be saved"
            )
    return {name: convert_to_tensor(states[name]) for name in sorted(states)}


def batch_sequences_with_states(
    input_key: Any,
    input_sequences: Mapping[str, Any],
    input_context: Mapping[str, Any] | None,
    input_length: Any,
    initial_states: Mapping[str, Any],
    num_unroll: int,
    batch_size: int,
    num_threads: int = 3,
    capacity: int = 1000,
    allow_small_batch: bool = True,
    pad: bool = True,
    make_keys_unique: bool = False,
    make_keys_unique_seed: int | None = None,
    name: str | None = None,
) -> NextQueuedSequenceBatch:
    """Batches of pieces of sequences with their states; queue runners take the sequences.

    ``pad`` fills sequences up to a multiple of ``num_unroll``; ``make_keys_unique`` adds a random
    number to each key.

    Example:
        >>> batch = tf.contrib.training.batch_sequences_with_states(
        ...     key, {"x": x}, {}, length, {"lstm": tf.zeros([64])}, num_unroll=10, batch_size=32)
        >>> outputs, _ = tf.nn.static_state_saving_rnn(
        ...     cell, tf.unstack(batch.sequences["x"], axis=1), batch, "lstm")
    """
    with name_scope(name, "batch_sequences_with_states"):
        key = convert_to_tensor(input_key, string)
        if make_keys_unique:
            seed = make_keys_unique_seed
            number = random_uniform([], 0, int64.max, dtype=int64, seed=seed)
            key = string_join([key, as_string(number)], ":")
        sequences = dict(input_sequences)
        length = convert_to_tensor(input_length, int32)
        if pad:
            sequences = {n: _filled_up(given, num_unroll) for n, given in sequences.items()}
        saver = SequenceQueueingStateSaver(
            batch_size,
            num_unroll,
            length,
            key,
            sequences,
            input_context,
            initial_states,
            capacity=capacity,
            allow_small_batch=allow_small_batch,
        )
        add_queue_runner(
            QueueRunner(
                saver,  # type: ignore[arg-type]
                [saver.prefetch_op] * num_threads,
                queue_closed_exception_types=(OutOfRangeError, CancelledError),
            )
        )
        return saver.next_batch


def _filled_up(given: Any, unroll: int) -> Any:
    """``given`` with zeros behind it, up to a multiple of ``unroll``; empty steps, if sparse."""
    sparse = sparse_or_none(given)
    if sparse is not None:
        steps, rest = sparse.dense_shape[:1], sparse.dense_shape[1:]
        dims = concat([steps + (-steps % unroll), rest], 0)
        dims.set_shape(sparse.dense_shape.get_shape())
        return SparseTensor(sparse.indices, sparse.values, dims)
    tensor = convert_to_tensor(given)
    known = tensor.get_shape().with_rank_at_least(1)
    missing = -shape_of(tensor)[0] % unroll
    sizes = concat([[[0, missing]], fill([(known.ndims or 1) - 1, 2], 0)], 0)
    filled = padded(tensor, sizes)
    filled.set_shape(TensorShape([None]).concatenate(known[1:]))
    return filled
