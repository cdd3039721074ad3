"""Who takes part in a job, how far each has come, and who may begin another step: the rules.

A table has a row for each worker. These functions say what becomes of it at each event. They are
written over a small set of array functions, so that the graph of ``bounded_staleness.py`` and a
test without any graph decide by the same lines. ``docs/guide/coordination.md`` proves what they
keep true.

A member holds a *lease*, which it renews. Expiry alone changes nothing: a worker that nobody has
to wait for may come back late. One that would hold up another, and whose lease is over, is put out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

NOBODY = 0
"""The incarnation of a row that has no worker."""
UNBOUNDED = 2**62
"""A staleness that no worker ever has."""
PUT_OUT, WAIT, GO = -1, 0, 1
"""What :func:`enter` tells a worker: join again, ask again, begin."""


class Arrays(NamedTuple):
    """The functions over arrays that the rules need, beside operators."""

    where: Callable[[Any, Any, Any], Any]
    equal: Callable[[Any, Any], Any]
    least: Callable[[Any], Any]
    largest: Callable[[Any], Any]
    any: Callable[[Any], Any]
    total: Callable[[Any], Any]


NUMPY = Arrays(np.where, np.equal, np.min, np.max, np.any, np.sum)


class Members(NamedTuple):
    """The columns of the table; 64-bit integers, one for each worker."""

    incarnation: Any
    """Which life of the worker it is, or NOBODY."""
    clock: Any
    """How many steps it has done, counted on from where it joined."""
    entered: Any
    """1 from when it may begin a step until that step is applied."""
    deadline: Any
    """When its lease ends."""
    dropped: Any
    """How many of its steps were not applied, ever."""


Leased = TypeVar("Leased", bound=Any)
"""Columns with an incarnation and a deadline, as a named tuple."""


def nobody(workers: int) -> Members:
    """The table before anyone has joined."""
    return Members(*(np.zeros(workers, np.int64) for _ in Members._fields))


def _others(xp: Arrays, members: Members, mine: Any) -> Any:
    return ~xp.equal(members.incarnation, NOBODY) & ~mine


def _is_mine(xp: Arrays, members: Members, mine: Any, incarnation: Any) -> Any:
    return xp.any(mine & xp.equal(members.incarnation, incarnation))


def join(
    xp: Arrays, members: Members, mine: Any, incarnation: Any, now: Any, lease: Any
) -> Members:
    """The worker of the row ``mine`` begins a new life beside the slowest of the others."""
    others = _others(xp, members, mine) & (members.deadline >= now)
    slowest = xp.least(xp.where(others, members.clock, UNBOUNDED))
    clock = xp.where(xp.any(others), slowest, xp.largest(members.clock))
    return Members(
        xp.where(mine, incarnation, members.incarnation),
        xp.where(mine, clock, members.clock),
        xp.where(mine, 0, members.entered),
        xp.where(mine, now + lease, members.deadline),
        members.dropped,
    )


def enter(
    xp: Arrays,
    members: Members,
    mine: Any,
    incarnation: Any,
    now: Any,
    lease: Any,
    staleness: int,
) -> tuple[Members, Any]:
    """The worker asks to begin a step: ``GO`` when it is at most ``staleness`` ahead of everyone.

    Those that it would have to wait for are put out if all their leases are over.
    """
    present = _is_mine(xp, members, mine, incarnation)
    own_clock = xp.largest(xp.where(mine, members.clock, 0))
    awaited = _others(xp, members, mine) & (members.clock < own_clock - staleness)
    may = present & ~xp.any(awaited & (members.deadline >= now))
    changed = Members(
        xp.where(awaited & may, NOBODY, members.incarnation),
        members.clock,
        xp.where(mine & may, 1, members.entered),
        xp.where(mine & present, now + lease, members.deadline),
        members.dropped,
    )
    return changed, xp.where(present, xp.where(may, GO, WAIT), PUT_OUT)


def admits(xp: Arrays, members: Members, mine: Any, incarnation: Any, now: Any, lease: Any) -> Any:
    """Whether the worker's step may be applied: it has entered, and its lease is not half over.

    The other half is for applying it: nobody goes on without this worker before that.
    """
    entered = mine & xp.equal(members.incarnation, incarnation) & xp.equal(members.entered, 1)
    return xp.any(entered & (members.deadline >= now + lease // 2))


def change(
    xp: Arrays, members: Members, mine: Any, incarnation: Any, admitted: Any
) -> tuple[Any, Any, Any]:
    """What the end of a step adds to the worker's clock, entered and dropped."""
    present = _is_mine(xp, members, mine, incarnation)
    done = xp.where(admitted & present, 1, 0)
    return done, -done, xp.where(admitted, 0, 1)


def renew(xp: Arrays, members: Leased, mine: Any, incarnation: Any, now: Any, lease: Any) -> Leased:
    """The worker says that it is there; one that was put out stays out."""
    own = mine & xp.equal(members.incarnation, incarnation)
    return members._replace(deadline=xp.where(own, now + lease, members.deadline))


def leave(xp: Arrays, members: Leased, mine: Any, incarnation: Any) -> Leased:
    """The worker does not come again: nobody waits for it."""
    own = mine & xp.equal(members.incarnation, incarnation)
    return members._replace(incarnation=xp.where(own, NOBODY, members.incarnation))
