"""Whose gradients an update of synchronous training waits for, when workers come and go: the rules.

A table has a row for each worker. These functions say what becomes of it at each event, and what it
means; as those of ``membership.py`` they are written over a small set of array functions, so that
the graph of ``elastic_replicas.py`` and a test without any graph decide by the same lines.
``docs/guide/coordination.md`` has what they keep true.

A member holds a lease, which it renews. An update waits for members whose leases last; expiry
alone changes nothing, and a worker that is late is awaited again with its next step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.train.membership import NOBODY, Arrays


class Givers(NamedTuple):
    """The columns of the table; 64-bit integers, one for each worker."""

    incarnation: Any
    """Which life of the worker it is, or NOBODY."""
    given: Any
    """It has given its gradients for all steps below this one that it takes part in."""
    deadline: Any
    """When its lease ends."""


def join(xp: Arrays, givers: Givers, mine: Any, incarnation: Any, now: Any, lease: Any) -> Givers:
    """The worker of the row ``mine`` begins a new life; what an earlier one gave stays given."""
    return Givers(
        xp.where(mine, incarnation, givers.incarnation),
        givers.given,
        xp.where(mine, now + lease, givers.deadline),
    )


def give(
    xp: Arrays, givers: Givers, mine: Any, incarnation: Any, step: Any, now: Any, lease: Any
) -> Givers:
    """The worker has added its gradients of ``step`` to all accumulators.

    It counts if the worker is in its row. A row that has nobody, since the chief began anew
    meanwhile, is taken again: some of these gradients may be gone, so the next ones count.
    """
    own = mine & xp.equal(givers.incarnation, incarnation)
    taken = own | (mine & xp.equal(givers.incarnation, NOBODY))
    return Givers(
        xp.where(taken, incarnation, givers.incarnation),
        xp.where(own, step + 1, givers.given),
        xp.where(taken, now + lease, givers.deadline),
    )


def _has_given(xp: Arrays, givers: Givers, step: Any) -> Any:
    return ~xp.equal(givers.incarnation, NOBODY) & (givers.given > step)


def living(xp: Arrays, givers: Givers, now: Any) -> Any:
    """The members whose leases last."""
    return ~xp.equal(givers.incarnation, NOBODY) & (givers.deadline >= now)


def suffices(xp: Arrays, givers: Givers, step: Any, required: int, now: Any) -> Any:
    """Whether the update of ``step`` can be made of what was given.

    ``required`` have given, or all members that are alive have.
    """
    given = _has_given(xp, givers, step)
    awaited = living(xp, givers, now) & ~given
    return (xp.total(given) >= required) | (~xp.any(awaited) & xp.any(given))


def waiting(xp: Arrays, givers: Givers, step: Any) -> Any:
    """The workers that have given for ``step`` or a later one, and wait for its update."""
    return _has_given(xp, givers, step)


def waits(xp: Arrays, givers: Givers, mine: Any, incarnation: Any, step: Any) -> Any:
    """Whether the worker has to wait: it has given for ``step``, and the update was not made."""
    own = mine & xp.equal(givers.incarnation, incarnation)
    return xp.any(own & waiting(xp, givers, step))
