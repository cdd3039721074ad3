"""The simulation of workers and parameter servers, against closed forms."""

from __future__ import annotations

import random
import statistics

import pytest

from benchmarks.evaluation.events import Engine, Resource, Tokens, Use
from benchmarks.evaluation.simulation import Layout, StepCosts, simulate


def fixed(seconds):
    return lambda worker: seconds


def test_users_of_one_resource_are_served_in_the_order_in_which_they_come():
    engine, resource, ended = Engine(), Resource(), []

    def user(name):
        yield Use(1.0, (resource,))
        ended.append((name, engine.now))

    for name in "abc":
        engine.start(user(name))
    engine.run_until(lambda: False)
    assert ended == [("a", 1.0), ("b", 2.0), ("c", 3.0)]
    assert resource.busy_seconds == 3.0


def test_a_resource_serves_as_many_at_a_time_as_it_has_places():
    engine, resource, ended = Engine(), Resource(2), []

    def user():
        yield Use(1.0, (resource,))
        ended.append(engine.now)

    for _ in range(5):
        engine.start(user())
    engine.run_until(lambda: False)
    assert ended == [1.0, 1.0, 2.0, 2.0, 3.0]


def test_uses_side_by_side_end_with_the_longest():
    engine, ended = Engine(), []

    def process():
        yield [Use(1.0), Use(3.0), Use(2.0)]
        ended.append(engine.now)
        yield []
        ended.append(engine.now)

    engine.start(process())
    engine.run_until(lambda: False)
    assert ended == [3.0, 3.0]


def test_tokens_go_to_those_who_wait_longest_and_are_otherwise_kept():
    engine, tokens, got = Engine(), Tokens(), []

    def taker(name):
        token = yield tokens
        got.append((name, token, engine.now))

    def giver():
        yield Use(2.0)
        for token in range(3):
            tokens.put(token)

    for name in "ab":
        engine.start(taker(name))
    engine.start(giver())
    engine.run_until(lambda: False)
    assert got == [("a", 0, 2.0), ("b", 1, 2.0)]
    assert len(tokens) == 1


@pytest.mark.parametrize("workers", [1, 2, 5, 8, 30])
def test_a_server_of_fixed_service_time_is_the_closed_queue_of_the_textbook(workers):
    # n customers that think for z and are served for s: at most n / (z + s) a second, and 1 / s.
    # Fixed times reach the bounds, but for where they meet (n = 1 + z / s = 5).
    service, think = 0.01, 0.04
    costs = StepCosts(worker=0.0, server=service)
    run = simulate(costs, Layout(workers), fixed(think), steps=300)
    bound = min(workers / (think + service), 1 / service)
    assert run.steps_per_second <= bound * 1.01
    assert run.steps_per_second == pytest.approx(bound, rel=0.1 if workers == 5 else 0.01)


def test_a_lone_worker_pays_for_everything_once_and_for_servers_side_by_side():
    costs = StepCosts(worker=0.003, server=0.002, first=0.001, latency=0.005)
    run = simulate(costs, Layout(1, servers=4), fixed(0.01), steps=50)
    assert run.median_step == pytest.approx(0.003 + 0.002 + 0.001 + 0.005 + 0.01)


def test_tasks_on_one_machine_cannot_use_more_than_its_cores():
    costs = StepCosts(worker=0.006, server=0.002)
    for cores in (1, 2, 1.5):
        run = simulate(costs, Layout(20, servers=2, cores=cores), fixed(0.0), steps=100)
        assert run.steps_per_second == pytest.approx(cores / (0.006 + 2 * 0.002), rel=0.03)


def test_a_synchronous_step_lasts_as_long_as_the_slowest_draw():
    drawn = []
    source = random.Random(0)

    def draw(worker):
        drawn.append(source.expovariate(1.0))
        return drawn[-1]

    run = simulate(StepCosts(0.0, 0.0), Layout(5, aggregated=5), draw, steps=100)
    rounds = [drawn[5 * k : 5 * k + 5] for k in range(100)]
    ends, now = [], 0.0
    for one in rounds:
        now += max(one)
        ends.append(now)
    assert run.updates == pytest.approx(ends[-len(run.updates) :])


def test_the_slowest_of_many_exponential_draws_takes_the_harmonic_sum():
    source = random.Random(1)
    run = simulate(
        StepCosts(0.0, 0.0),
        Layout(10, aggregated=10),
        lambda worker: source.expovariate(1.0),
        steps=1500,
    )
    expected = sum(1 / k for k in range(1, 11))
    assert 1 / run.updates_per_second == pytest.approx(expected, rel=0.05)


def test_an_update_costs_the_servers_and_the_chief_once_however_many_workers():
    for workers in (1, 6):
        costs = StepCosts(worker=0.0, server=0.0, update=0.02, chief=0.01)
        run = simulate(costs, Layout(workers, 3, aggregated=workers), fixed(0.1), steps=20)
        assert run.median_update == pytest.approx(0.13)


def test_every_gradient_is_applied_dropped_or_still_gathered():
    source = random.Random(2)
    run = simulate(
        StepCosts(0.001, 0.001),
        Layout(7, 2, aggregated=5),
        lambda worker: source.expovariate(10.0),
        steps=200,
    )
    assert run.dropped > 0
    assert 0 <= run.offered - run.applied - run.dropped < 5


def test_nothing_is_dropped_without_backups():
    source = random.Random(3)
    run = simulate(
        StepCosts(0.001, 0.001),
        Layout(6, 2, aggregated=6),
        lambda worker: source.expovariate(10.0),
        steps=100,
    )
    assert run.dropped == 0


def test_a_server_is_busy_for_as_long_as_it_was_asked_to_work():
    costs = StepCosts(worker=0.0, server=0.004)
    run = simulate(costs, Layout(3, servers=2), fixed(0.05), steps=40)
    for busy in run.server_busy:
        # Of each step that a worker has begun a half or all may have been served.
        assert 0 <= busy - run.offered * 0.004 <= 3 * 0.004 + 1e-9


def test_backups_shorten_the_step_when_some_steps_straggle():
    def times(workers):
        source = random.Random(4)
        run = simulate(
            StepCosts(0.0, 0.0),
            Layout(workers, aggregated=20),
            lambda worker: 1.0 if source.random() < 0.03 else 0.1 + 0.01 * source.random(),
            steps=300,
        )
        return statistics.mean(b - a for a, b in zip(run.updates, run.updates[1:]))

    assert times(24) < 0.6 * times(20)


def test_the_link_of_a_server_limits_what_workers_get():
    costs = StepCosts(worker=0.0, server=0.0, traffic=1e6)
    layout = Layout(8, servers=1, bandwidth=1e8)
    run = simulate(costs, layout, fixed(0.0), steps=50)
    assert run.steps_per_second == pytest.approx(1e8 / 1e6, rel=0.02)


@pytest.mark.parametrize("first", [0.0, 0.003])
def test_one_server_may_stand_for_those_that_all_do_the_same(first):
    def ends(cores):
        source = random.Random(6)
        costs = StepCosts(0.001, 0.002, first)
        layout = Layout(6, servers=5, cores=cores)
        return simulate(costs, layout, lambda worker: 0.02 * source.random(), steps=40).ends

    plenty = 1000  # simulates all servers, and lets none of them wait for a core
    for alone, beside in zip(ends(None), ends(plenty), strict=True):
        assert alone == pytest.approx(beside)


def test_a_run_depends_on_its_inputs_only():
    def once():
        source = random.Random(5)
        return simulate(
            StepCosts(0.001, 0.002), Layout(4, 2, 2), lambda w: source.random(), steps=30
        ).ends

    assert once() == once()
