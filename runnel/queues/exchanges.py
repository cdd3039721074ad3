"""What the members of a group send each other for each kind of collective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.queues.collective import Begin, Exchange, Send

MERGES: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Min": np.minimum,
    "Max": np.maximum,
}
SMALL_BYTES = 1 << 14
"""A value of up to this size is sent whole to every member: a ring would take longer."""


def all_reduce(value: np.ndarray, merge: str, divides: bool) -> Begin:
    """Every member gets what all values give together; ``divides``: by their number."""

    def begin(rank: int, count: int, send: Send) -> Exchange:
        total = np.array(value).reshape(-1)
        if count > 1:
            exchange = _whole if total.nbytes <= SMALL_BYTES else _around_ring
            total = yield from exchange(total, MERGES[merge], rank, count, send)
        if divides:
            total = _divided(total, count)
        return total.reshape(value.shape)

    return begin


def _whole(total: np.ndarray, merge: Any, rank: int, count: int, send: Send) -> Exchange:
    """Each adds up all values in the same order."""
    values = [total] * count
    for other in range(count):
        if other != rank:
            send(other, f"{rank}", total)
    for other in range(count):
        if other != rank:
            values[other] = _alike((yield f"{other}"), total)
    found = values[0].copy()
    for value in values[1:]:
        merge(found, value, out=found)
    return found


def _around_ring(total: np.ndarray, merge: Any, rank: int, count: int, send: Send) -> Exchange:
    """Each piece goes around and grows, then goes around again for all to have it."""
    ends = [len(total) * i // count for i in range(count + 1)]
    pieces = [total[begin:end] for begin, end in zip(ends, ends[1:], strict=False)]
    after = (rank + 1) % count
    for stage in range(count - 1):
        send(after, f"add {stage}", pieces[(rank - stage) % count])
        mine = pieces[(rank - stage - 1) % count]
        merge(mine, _alike((yield f"add {stage}"), mine), out=mine)
    for stage in range(count - 1):
        send(after, f"all {stage}", pieces[(rank + 1 - stage) % count])
        mine = pieces[(rank - stage) % count]
        np.copyto(mine, _alike((yield f"all {stage}"), mine))
    return total


def all_gather(value: np.ndarray) -> Begin:
    """Every member gets all values, one behind the other in the order of the members."""

    def begin(rank: int, count: int, send: Send) -> Exchange:
        values = [value] * count
        for other in range(count):
            if other != rank:
                send(other, f"{rank}", value)
        for other in range(count):
            if other != rank:
                values[other] = yield f"{other}"
                if values[other].dtype != value.dtype or values[other].shape[1:] != value.shape[1:]:
                    raise _different(values[other], value)
        return np.concatenate(values)

    return begin


def broadcast_send(value: np.ndarray) -> Begin:
    """Every other member gets this value."""

    def begin(rank: int, count: int, send: Send) -> Exchange:
        for other in range(count):
            if other != rank:
                send(other, "value", value)
        return value
        yield  # it asks for nothing

    return begin


def broadcast_receive() -> Begin:
    """This member gets the value of the one that sends."""

    def begin(rank: int, count: int, send: Send) -> Exchange:
        return (yield "value")

    return begin


def _alike(value: np.ndarray, mine: np.ndarray) -> np.ndarray:
    if value.shape != mine.shape or value.dtype != mine.dtype:
        raise _different(value, mine)
    return value


def _different(value: np.ndarray, mine: np.ndarray) -> InvalidArgumentError:
    return InvalidArgumentError(
        None,
        None,
        f"The members of the group have different values: {value.dtype} {value.shape} and "
        f"{mine.dtype} {mine.shape}",
    )


def _divided(total: np.ndarray, count: int) -> np.ndarray:
    if np.issubdtype(total.dtype, np.integer):
        return np.sign(total) * (np.abs(total) // count)
    return (total / count).astype(total.dtype)
