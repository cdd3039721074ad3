"""Which tier is kept: what runs have taken goes in, a judgement comes out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runnel.runtime.segment.tier_trial import RUNS, TierTrial, typical

Seconds = Callable[[int], float]
TRIED = "c" * (RUNS + 1) + "i" * (RUNS + 1)
"""The tiers of a trial in which both are compared; the first run of either does not count."""


class Steps:
    """Steps that take as long as a test says, and which tier each of them ran in."""

    def __init__(self, usual: float) -> None:
        self.trial = TierTrial(usual)
        self.tiers = ""
        self.now = 0.0

    def run(self, count: int, compiled: Seconds, interpreted: Seconds) -> str:
        """The tiers of so many steps, a letter for each; it ends when the compiled form does."""
        begun = len(self.tiers)
        for number in range(count):
            looks = self.trial.looks()
            interprets = looks and self.trial.interprets
            self.tiers += "i" if interprets else "c"
            if looks:
                began = self.now
                self.now += (interpreted if interprets else compiled)(number)
                self.trial.note(began, self.now, interprets)
            if not self.trial.is_kept:
                break
        return self.tiers[begun:]


def always(seconds: float) -> Seconds:
    return lambda number: seconds


def test_a_form_that_wins_clearly_is_kept_and_nothing_more_is_interpreted():
    assert Steps(1.0).run(5000, always(0.2), always(1.0)) == "c" * 5000


@pytest.mark.parametrize("stalled", [1, 2, 3])
def test_runs_that_prepare_or_are_held_up_are_no_reason_to_give_a_form_up(stalled):
    steps = Steps(1.0)
    assert "i" not in steps.run(RUNS + 1, lambda n: 50.0 if n < stalled else 0.5, always(1.0))
    assert steps.trial.is_kept and steps.trial.is_over


def test_runs_of_other_threads_that_waited_for_a_first_one_do_not_count():
    trial = TierTrial(1.0)
    for began in range(5):  # all of them wait until the first has been prepared
        trial.note(began, 50.0 + began)
    for number in range(RUNS):
        assert not trial.is_over
        trial.note(50.0 + number, 50.5 + number)
    assert trial.is_over and trial.is_kept


def test_a_form_that_is_sometimes_fast_but_mostly_waits_for_processors_is_given_up():
    # At best it takes half as long; in four runs of ten XLA's threads have to wait.
    found = Steps(0.7).run(100, lambda n: 8.0 if n % 5 in (1, 3) else 0.35, always(0.8))
    assert found == TRIED


def test_both_are_tried_as_things_are_now():
    """The machine has become busy: everything takes longer than interpreted runs did before."""
    steps = Steps(1.0)
    assert steps.run(len(TRIED), always(3.0), always(6.0)) == TRIED
    assert steps.trial.is_kept


def test_what_was_compared_on_a_busy_machine_is_compared_again_on_a_calm_one():
    steps = Steps(1.0)
    assert steps.run(len(TRIED), always(30.0), always(60.0)) == TRIED
    assert steps.trial.is_kept
    busy = steps.run(5000, always(30.0), always(60.0))
    assert "i" not in busy
    found = steps.run(5000, always(10.0), always(5.0))
    assert found.endswith("c" * (RUNS + 1) + "i" * (RUNS + 1))
    assert not steps.trial.is_kept
    steps = Steps(1.0)
    steps.run(len(TRIED), always(30.0), always(60.0))
    found = steps.run(50_000, always(10.0), always(20.0))
    assert steps.trial.is_kept
    assert found.count("i") == RUNS + 1


def test_a_form_that_becomes_slower_later_is_given_up_then():
    steps = Steps(1.0)
    steps.run(1000, always(0.5), always(1.0))
    found = steps.run(1000, always(9.0), always(1.1))
    assert found.endswith("c" * RUNS + "i" * (RUNS + 1))
    assert not steps.trial.is_kept
    assert steps.trial.compared == (pytest.approx(9.0), pytest.approx(1.1))


def test_what_is_doubted_and_kept_is_interpreted_ever_more_rarely():
    steps = Steps(0.001)  # an interpreted run that was once that short
    found = steps.run(100_000, always(1.0), lambda n: 0.9 if n % 1000 else 0.1)
    assert steps.trial.is_kept
    assert found.count("i") == RUNS + 1  # from then on it is known better
    steps = Steps(1.0)
    found = steps.run(100_000, lambda n: 1.0 + n, lambda n: 1.0 + n)  # ever slower, both alike
    assert found.count("i") < 20 * RUNS


def test_the_typical_run_is_the_mean_without_the_longest():
    assert typical([1.0, 3.0]) == 2.0
    assert typical([1.0, 1.0, 2.0, 2.0, 100.0]) == 1.5
