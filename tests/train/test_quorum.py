"""The rules of elastic synchronous training keep their promises in every order of events."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from runnel.train import quorum
from tests.train import quorum_model
from tests.train.quorum_model import run_schedule
from tests.train.staleness_model import BrokenPromise

SCHEDULES = 1500


def test_no_order_of_events_breaks_a_promise():
    sizes: dict[int, int] = {}
    for seed in range(SCHEDULES):
        for update in run_schedule(seed, faults=True).updates:
            rows = len({gradient.row for gradient in update})
            sizes[rows] = sizes.get(rows, 0) + 1
    assert sizes.keys() == {1, 2, 3, 4} and sum(sizes.values()) > 5 * SCHEDULES


def test_without_faults_everyone_is_in_every_update_and_no_ring_is_lost():
    for seed in range(SCHEDULES):
        job = run_schedule(seed, faults=False)  # which ends only if nobody had to renew
        count = len(job.workers)
        if job.required == count:
            assert all(len(update) == count for update in job.updates)
        assert len(job.updates) >= 3


def waits_for_the_dead(xp, givers, step, required, now, original):
    return original(xp, givers, step, required, 0)


def waits_for_nobody(xp, givers, step, required, now, original):
    return original(xp, givers, step, 1, now)


def joins_as_if_it_had_given(xp, givers, mine, incarnation, now, lease, original):
    joined = original(xp, givers, mine, incarnation, now, lease)
    return joined._replace(given=np.where(mine, 10**6, joined.given))


def counts_what_the_chief_forgot(xp, givers, mine, incarnation, step, now, lease, original):
    taken = givers._replace(incarnation=np.where(mine, incarnation, givers.incarnation))
    return original(xp, taken, mine, incarnation, step, now, lease)


def waits_for_what_was_forgotten(xp, givers, mine, incarnation, step, original):
    return ~np.any(mine & (givers.given > 0)) or original(xp, givers, mine, incarnation, step)


def never_waits(xp, givers, mine, incarnation, step, original):
    return np.False_


def wakes_nobody(xp, givers, step, original):
    return original(xp, givers, step + 10)


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("suffices", waits_for_the_dead),
        ("suffices", waits_for_nobody),
        ("join", joins_as_if_it_had_given),
        ("give", counts_what_the_chief_forgot),
        ("waits", waits_for_what_was_forgotten),
        ("waits", never_waits),
        ("waiting", wakes_nobody),
    ],
)
def test_a_wrong_rule_is_found(monkeypatch, rule, wrong):
    monkeypatch.setattr(quorum, rule, partial(wrong, original=getattr(quorum, rule)))
    with pytest.raises(BrokenPromise):
        for seed in range(SCHEDULES):
            for faults in (True, False):
                run_schedule(seed, faults)


def test_a_chief_that_dismisses_before_it_forgets_is_found(monkeypatch):
    class Hasty(quorum_model.Job):
        def restart_chief(self):
            super().restart_chief()
            self.chief = "dismiss"

        def go_on_chief(self):
            dismisses = self.chief == "dismiss"
            was_last = self.chief == "empty 1"
            super().go_on_chief()
            if dismisses:
                self.chief = "empty 0"
            elif was_last:
                self.chief = "look"

    monkeypatch.setattr(quorum_model, "Job", Hasty)
    with pytest.raises(BrokenPromise):
        for seed in range(SCHEDULES):
            run_schedule(seed, faults=True)
