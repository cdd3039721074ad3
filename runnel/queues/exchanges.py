"""The messages that the members of a group exchange for each kind of collective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.queues.collective_call import Begin, Exchange, Send

MERGES: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Min": np.minimum,
    "Max": np.maximum,
}
SMALL_BYTES = 1 << 14
"""A value of up to this size is sent whole to every member: a ring would take longer."""
CACHED = 1 << 16
"""Elements that are added and divided while they are in a core's cache."""

Empty = Callable[[tuple[int, ...], np.dtype], np.ndarray]


def all_reduce(value: Any, merge: str, divides: bool, empty: Empty = np.empty) -> Begin:
    """Every member gets what all values give together; ``divides``: by their number.

    ``value``, an array here or on a device, must not change meanwhile. ``empty`` gives the memory
    for a large result.
    """

    def begin(rank: int, count: int, send: Send) -> Exchange:
        array = np.asarray(value)
        # Two would send as much around a ring, in two turns.
        exchange = _around_ring if count > 2 and array.nbytes > SMALL_BYTES else _whole
        merging = _Merging(MERGES[merge], count if divides else 1)
        found = yield from exchange(array.reshape(-1), merging, rank, count, send, empty)
        return found.reshape(array.shape)

    return begin


class _Merging:
    """Adds up the values of members, or whatever their ``merge`` is, and divides the last sum."""

    def __init__(self, merge: Callable[..., Any], divisor: int) -> None:
        self._merge, self._divisor = merge, divisor

    def __call__(self, a: np.ndarray, b: np.ndarray, out: np.ndarray, is_last: bool) -> None:
        """Puts what ``a`` and ``b`` give into ``out``, which may be one of them."""
        for begin in range(0, len(out), CACHED):
            part = slice(begin, begin + CACHED)
            self._merge(a[part], b[part], out=out[part])
            if is_last and self._divisor > 1:
                self._divide(out[part])

    def _divide(self, total: np.ndarray) -> None:
        """Divides ``total`` in its place; integers towards 0."""
        divisor = total.dtype.type(self._divisor)
        if total.dtype.kind == "i":
            np.floor_divide(total + (total < 0) * (divisor - 1), divisor, out=total)
        else:
            np.true_divide(total, divisor, out=total)


def _whole(
    mine: np.ndarray, merging: _Merging, rank: int, count: int, send: Send, empty: Empty
) -> Exchange:
    """Each adds up all values in the same order."""
    values = [mine] * count
    for other in range(count):
        if other != rank:
            send(other, f"{rank}", mine)
    for other in range(count):
        if other != rank:
            values[other] = _alike((yield f"{other}"), mine)
    if count == 1:
        return mine.copy()
    total, found = values[0], empty(mine.shape, mine.dtype)
    for place, value in enumerate(values[1:], 2):
        merging(total, value, found, place == count)
        total = found
    return found


def _around_ring(
    mine: np.ndarray, merging: _Merging, rank: int, count: int, send: Send, empty: Empty
) -> Exchange:
    """Each piece goes around and grows, then goes around again for all to have it."""
    ends = [len(mine) * i // count for i in range(count + 1)]
    places = [slice(*pair) for pair in zip(ends, ends[1:], strict=False)]
    after = (rank + 1) % count
    found = empty(mine.shape, mine.dtype)
    sent = mine[places[rank]]
    for stage in range(count - 1):
        send(after, f"add {stage}", sent)
        place = places[(rank - stage - 1) % count]
        own, sent = mine[place], found[place]
        merging(own, _alike((yield f"add {stage}"), own), sent, stage == count - 2)
    for stage in range(count - 1):
        send(after, f"all {stage}", sent)
        sent = found[places[(rank - stage) % count]]
        np.copyto(sent, _alike((yield f"all {stage}"), sent))
    return found


def all_gather(value: Any) -> Begin:
    """Every member gets all values, one behind the other in the order of the members."""

    def begin(rank: int, count: int, send: Send) -> Exchange:
        mine = np.asarray(value)
        values = [mine] * count
        for other in range(count):
            if other != rank:
                send(other, f"{rank}", mine)
        for other in range(count):
            if other != rank:
                values[other] = yield f"{other}"
                if values[other].dtype != mine.dtype or values[other].shape[1:] != mine.shape[1:]:
                    raise _different(values[other], mine)
        return np.concatenate(values)

    return begin


def broadcast_send(value: Any) -> Begin:
    """Every other member gets this value."""

    def begin(rank: int, count: int, send: Send) -> Exchange:
        mine = np.asarray(value)
        for other in range(count):
            if other != rank:
                send(other, "value", mine)
        return mine
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
