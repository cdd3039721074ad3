"""The rules of bounded staleness keep their promises in every order of events."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from runnel.train import membership
from runnel.train.membership import Members
from tests.train.staleness_model import BrokenPromise, run_schedule

SCHEDULES = 2000


def test_no_order_of_events_breaks_a_promise():
    applied = dropped = 0
    for seed in range(SCHEDULES):
        job = run_schedule(seed)
        applied += len(job.updates)
        dropped += int(job.members.dropped.sum())
    # The schedules are worth something: steps are made, and some come too late.
    assert applied > 5 * SCHEDULES and dropped > SCHEDULES // 20


def joins_at_zero(xp, members, mine, incarnation, now, lease, original):
    joined = original(xp, members, mine, incarnation, now, lease)
    return joined._replace(clock=np.where(mine, 0, joined.clock))


def waits_for_nobody(xp, members, mine, incarnation, now, lease, staleness, original):
    return original(xp, members, mine, incarnation, now, lease, membership.UNBOUNDED)


def waits_one_step_less(xp, members, mine, incarnation, now, lease, staleness, original):
    return original(xp, members, mine, incarnation, now, lease, staleness + 1)


def waits_for_the_dead(xp, members, mine, incarnation, now, lease, staleness, original):
    return original(xp, members, mine, incarnation, 0, lease, staleness)


def goes_on_beside_the_dead(xp, members, mine, incarnation, now, lease, staleness, original):
    changed, told = original(xp, members, mine, incarnation, now, lease, staleness)
    return changed._replace(incarnation=members.incarnation), told


def admits_whoever_is_in_the_row(xp, members, mine, incarnation, now, lease, original):
    return np.True_


def admits_to_the_end_of_the_lease(xp, members, mine, incarnation, now, lease, original):
    return original(xp, members, mine, incarnation, now, 0)


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("join", joins_at_zero),
        ("enter", waits_for_nobody),
        ("enter", waits_one_step_less),
        ("enter", waits_for_the_dead),
        ("enter", goes_on_beside_the_dead),
        ("admits", admits_whoever_is_in_the_row),
        ("admits", admits_to_the_end_of_the_lease),
    ],
)
def test_a_wrong_rule_is_found(monkeypatch, rule, wrong):
    monkeypatch.setattr(membership, rule, partial(wrong, original=getattr(membership, rule)))
    with pytest.raises(BrokenPromise):
        for seed in range(SCHEDULES):
            run_schedule(seed)


def test_a_worker_joins_beside_the_slowest_that_is_there():
    columns = ([7, 8, 9, 0], [5, 3, 4, 9], [0] * 4, [20, 10, 20, 0], [0] * 4)
    members = Members(*(np.array(column) for column in columns))
    mine = np.array([False, False, False, True])
    joined = membership.join(membership.NUMPY, members, mine, 6, 15, 10)
    assert joined.clock.tolist() == [5, 3, 4, 4]  # the second one's lease is over
    assert joined.incarnation.tolist() == [7, 8, 9, 6]
    alone = membership.join(
        membership.NUMPY, members._replace(incarnation=np.zeros(4, np.int64)), mine, 6, 15, 10
    )
    assert alone.clock.tolist() == [5, 3, 4, 9]  # nobody is there: the clocks go on
