"""Operations that give what is in a queue, or where a reader stands, and put it back."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import DataLossError, InvalidArgumentError
from runnel.graph.registry import register_op
from runnel.ops.queues.queue_ops import denoted, described
from runnel.pipelines.reader_state import ReaderState
from runnel.pipelines.sources import scalar
from runnel.pipelines.state_bytes import decoded, encoded
from runnel.queues.queue import Contents, Queue


def _op(name: str, inputs: str, outputs: str = "") -> Any:
    return register_op(
        name,
        inputs=inputs,
        outputs=outputs,
        blocking=True,
        holds_thread=True,
        differentiable=False,
    )


serialize_queue_op = _op("SerializeQueue", "handle: resource", "state: string")
deserialize_queue_op = _op("DeserializeQueue", "handle: resource, state: string")
serialize_reader_op = _op("SerializeReader", "reader_handle: resource", "state: string")
deserialize_reader_op = _op("DeserializeReader", "reader_handle: resource, state: string")

serialize_queue_op.shape(lambda handle: (None,))
serialize_reader_op.shape(lambda handle: ())


@serialize_queue_op.kernel
def _(xp, handle, *, waiter):
    queue = denoted(handle, Queue)
    contents = queue.contents()
    kind = [[what, ours] for what, ours in described(queue).items()]
    states: list[Any] = [[kind, contents.is_closed, contents.draws, len(contents.stored)]]
    for values in (*contents.stored, *contents.pending):
        states.append(None if values is None else _arrays(queue, values))
    out = np.empty(len(states), object)  # a string for each element: one for all is a copy more
    out[:] = [encoded(state) for state in states]
    return (out,)


def _arrays(queue: Queue, values: Any) -> list[np.ndarray]:
    return [np.asarray(v, t.np_dtype) for v, t in zip(values, queue.types, strict=True)]


@deserialize_queue_op.kernel
def _(xp, handle, state, *, waiter):
    queue = denoted(handle, Queue)
    head, *elements = [decoded(one) for one in np.asarray(state).reshape(-1)] or [None]
    try:
        kind, is_closed, draws, count = head
        _check_kind(queue, dict(kind))
        contents = Contents(bool(is_closed), draws, elements[:count], elements[count:])
        _check_values(queue, contents)
    except (ValueError, TypeError) as error:
        message = f"What was saved of the queue {queue.name!r} is damaged: {error}"
        raise DataLossError(None, None, message) from None
    queue.replace(contents)
    return ()


def _check_kind(queue: Queue, saved: dict[str, Any]) -> None:
    for what, ours in described(queue).items():
        if saved.get(what) != ours:
            raise InvalidArgumentError(
                None,
                None,
                f"The queue {queue.name!r} was saved with {what} {saved.get(what)}, but has {what} "
                f"{ours}. Build the input as it was when the checkpoint was saved, or restore "
                "without it: tf.train.Saver(var_list=...)",
            )


def _check_values(queue: Queue, contents: Contents) -> None:
    for values in (*contents.stored, *[each for each in contents.pending if each is not None]):
        types = [np.asarray(value).dtype for value in values]
        if types != [dtype.np_dtype for dtype in queue.types]:
            raise ValueError(f"an element has the types {types}")
    if contents.draws is not None:
        seed, seed2, drawn = contents.draws
        if min(seed, seed2, drawn) < 0 or max(seed, seed2, drawn) >= 1 << 64:
            raise ValueError(f"its random numbers are at {contents.draws}")


@serialize_reader_op.kernel
def _(xp, reader, *, waiter):
    return (scalar(encoded(denoted(reader, ReaderState).position(waiter.require_time))),)


@deserialize_reader_op.kernel
def _(xp, reader, state, *, waiter):
    found = denoted(reader, ReaderState)
    position = decoded(np.asarray(state).item())
    expected = [int, int, int, bytes, bool, int]
    if not isinstance(position, list) or [type(each) for each in position] != expected:
        message = f"What was saved of the reader {found.name!r} is damaged: {position!r}"
        raise DataLossError(None, None, message)
    found.move_to(position, waiter.require_time)
    return ()
