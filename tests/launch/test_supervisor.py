"""Who is started, started anew and ended when: the rules, without any process."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runnel.launch.supervisor import (
    EARLY_SECONDS,
    HEALTHY_SECONDS,
    JobSupervisor,
    SignalTask,
    StartTask,
    TellUser,
)
from runnel.launch.task_layout import LaunchedTask, TaskLayout

PS, W0, W1 = LaunchedTask("ps", 0), LaunchedTask("worker", 0), LaunchedTask("worker", 1)
EVALUATOR = LaunchedTask("evaluator", 0)
LAYOUT = TaskLayout(ps=1, workers=2)


def _begun(layout=LAYOUT, **options) -> JobSupervisor:
    supervisor = JobSupervisor(layout.tasks(), **options)
    started = [i.task for i in supervisor.begin(0.0)]
    assert started == layout.tasks()
    return supervisor


def _told(instructions) -> str:
    return " / ".join(i.text for i in instructions if isinstance(i, TellUser))


def _done(instructions) -> list:
    return [i for i in instructions if not isinstance(i, TellUser)]


def test_when_the_workers_are_done_the_servers_are_ended_and_the_job_has_succeeded():
    job = _begun()
    assert _done(job.ended(W0, 0, 5.0)) == []
    assert _done(job.ended(W1, 0, 6.0)) == [SignalTask(PS, signal.SIGTERM)]
    assert job.status is None
    job.ended(PS, -signal.SIGTERM, 6.1)
    assert job.status == 0


def test_a_server_that_does_not_end_is_killed():
    job = _begun()
    job.ended(W0, 0, 5.0)
    job.ended(W1, 0, 5.0)
    assert job.tick(job.next_time - 0.01) == []
    assert SignalTask(PS, signal.SIGKILL) in job.tick(job.next_time)


def test_a_task_that_somebody_kills_is_started_anew_at_once():
    job = _begun(restarts=100)
    for life in range(1, 9):
        job.ended(W1, -signal.SIGKILL, 100.0 + life)
        assert job.tick(100.0 + life) == [StartTask(W1, life)]


def test_a_task_that_fails_at_once_again_and_again_is_started_after_growing_pauses():
    job = _begun(restarts=4)
    now, pauses = 100.0, []
    for life in range(1, 5):
        told = job.ended(W1, -signal.SIGSEGV, now)
        assert "worker:1 was killed by SIGSEGV; it is started anew" in _told(told)
        assert f"({life} of 4)" in _told(told)
        pauses.append(job.next_time - now)
        now = job.next_time
        assert job.tick(now) == [StartTask(W1, life)]
    assert pauses == [0.0, 1.0, 2.0, 4.0]


@pytest.mark.parametrize("task", [W1, PS])
def test_a_life_in_which_steps_were_made_is_followed_by_another_at_once(task):
    job = _begun(restarts=100)
    now = 100.0
    for life in range(1, 5):
        job.progressed(W0)
        job.progressed(W1)
        now += 1.0
        job.ended(task, -signal.SIGKILL, now)
        assert job.tick(now) == [StartTask(task, life)]


def test_a_task_that_has_died_too_often_ends_the_job_with_its_status():
    job = _begun(restarts=1)
    job.ended(W1, 3, 100.0)
    job.tick(100.0)
    told = job.ended(W1, 3, 101.0)
    assert "after 1 restarts of 1 allowed" in _told(told)
    assert _done(told) == [SignalTask(W0, signal.SIGTERM)]  # the servers stay while it saves
    assert _done(job.ended(W0, 0, 102.0)) == [SignalTask(PS, signal.SIGTERM)]
    job.ended(PS, -15, 102.5)
    assert job.status == 3


def test_a_long_life_begins_the_count_again():
    job = _begun(restarts=1)
    now = 0.0
    for life in range(1, 6):
        now += HEALTHY_SECONDS
        job.ended(PS, -signal.SIGKILL, now)
        assert job.tick(now) == [StartTask(PS, life)]


def test_an_error_of_a_program_that_has_just_begun_is_not_repeated():
    job = _begun()
    told = job.ended(W0, 2, EARLY_SECONDS / 2)
    assert "ended with status 2" in _told(told) and "the job ends" in _told(told)
    assert job.ending


def test_an_error_after_a_step_was_made_is_no_mistake_of_the_program():
    job = _begun()
    job.progressed(W1)
    job.ended(W0, 2, EARLY_SECONDS / 2)
    assert not job.ending


def test_when_the_chief_is_done_nobody_is_started_anew():
    job = _begun()
    assert _done(job.ended(W0, 0, 50.0)) == []
    told = job.ended(W1, -signal.SIGKILL, 51.0)
    assert "worker:1 was killed by SIGKILL; the chief is done" in _told(told)
    assert _done(told) == [SignalTask(PS, signal.SIGTERM)]
    job.ended(PS, 0, 52.0)
    assert job.status == 0


def test_a_worker_that_waits_to_be_started_when_the_chief_is_done_is_done_too():
    job = _begun()
    job.ended(W1, -signal.SIGSEGV, 50.0)
    job.tick(50.0)
    job.ended(W1, -signal.SIGSEGV, 50.0)  # now there is a pause
    assert _done(job.ended(W0, 0, 50.5)) == [SignalTask(PS, signal.SIGTERM)]
    assert job.tick(60.0)[-1:] == [SignalTask(PS, signal.SIGKILL)]


def test_a_worker_that_may_wait_for_a_chief_that_is_done_is_ended_after_the_grace_period():
    job = _begun(grace=10.0)
    job.progressed(W0)
    job.ended(W0, 0, 50.0)
    assert job.next_time == 60.0
    assert _done(job.tick(60.0)) == [SignalTask(W1, signal.SIGTERM)]
    job.ended(W1, -signal.SIGTERM, 60.1)
    job.ended(PS, 0, 61.0)
    assert job.status == 0


@pytest.mark.parametrize("steps", ["before", "after"])
def test_a_worker_that_makes_steps_goes_on_when_the_chief_is_done(steps):
    job = _begun(grace=10.0)
    job.progressed(W0)
    if steps == "before":
        job.progressed(W1)
    job.ended(W0, 0, 50.0)
    if steps == "after":
        job.progressed(W1)
    assert job.next_time is None


def test_a_worker_of_which_nothing_is_known_goes_on_when_the_chief_is_done():
    job = _begun()
    job.ended(W0, 0, 50.0)
    assert job.next_time is None


def test_a_server_that_ends_while_workers_run_is_started_anew_whatever_its_status():
    job = _begun()
    assert "ended with status 0; it is started anew" in _told(job.ended(PS, 0, 50.0))
    assert job.tick(50.0) == [StartTask(PS, 1)]


def test_an_interrupt_tells_workers_first_then_servers_then_kills():
    job = _begun(grace=10.0)
    told = job.interrupt(signal.SIGINT, 50.0)
    assert _done(told) == [SignalTask(W0, signal.SIGINT), SignalTask(W1, signal.SIGINT)]
    assert job.ended(W0, -signal.SIGINT, 51.0) == []
    assert _done(job.tick(60.0)) == [
        SignalTask(W1, signal.SIGINT),
        SignalTask(W1, signal.SIGKILL),
    ]
    assert _done(job.ended(W1, -signal.SIGKILL, 60.1)) == [SignalTask(PS, signal.SIGTERM)]
    job.ended(PS, 0, 61.0)
    assert job.status == 130


def test_a_second_interrupt_kills_everything_at_once():
    job = _begun()
    job.interrupt(signal.SIGINT, 50.0)
    killed = _done(job.interrupt(signal.SIGINT, 50.1))
    assert killed == [SignalTask(task, signal.SIGKILL) for task in LAYOUT.tasks()]


def test_an_evaluator_decides_nothing_and_may_finish_its_last_evaluation():
    job = _begun(TaskLayout(ps=0, workers=1, evaluator=True), grace=10.0)
    assert _done(job.ended(W0, 0, 20.0)) == []
    assert job.status is None
    assert SignalTask(EVALUATOR, signal.SIGTERM) in job.tick(30.0)
    job.ended(EVALUATOR, 1, 31.0)
    assert job.status == 0


def test_an_evaluator_that_fails_for_good_does_not_end_the_job():
    job = _begun(TaskLayout(workers=1, evaluator=True), restarts=0)
    assert "goes on without it" in _told(job.ended(EVALUATOR, 1, 50.0))
    job.ended(W0, 0, 60.0)
    assert job.status == 0


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["end", "interrupt", "tick", "progress"]),
        st.integers(0, 4),
        st.sampled_from([0, 0, 1, 7, -9, -15]),
        st.floats(0, 20),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(EVENTS, st.integers(0, 3), st.booleans())
def test_whatever_happens_the_job_ends_and_nothing_is_left_running(events, restarts, evaluator):
    """Against a world that only does what it is told; at the end everything that runs obeys."""
    layout = TaskLayout(ps=1, workers=2, chief=True, evaluator=evaluator)
    job = JobSupervisor(layout.tasks(), restarts, grace=5.0)
    running: set[LaunchedTask] = set()
    starts = dict.fromkeys(layout.tasks(), 0)
    killed: set[LaunchedTask] = set()

    def perform(instructions) -> None:
        for instruction in instructions:
            if isinstance(instruction, StartTask):
                assert instruction.task not in running
                assert instruction.life == starts[instruction.task]
                assert not job.ending
                starts[instruction.task] += 1
                running.add(instruction.task)
            elif isinstance(instruction, SignalTask):
                assert instruction.task in running
                if instruction.number == signal.SIGKILL:
                    killed.add(instruction.task)

    now = 0.0
    perform(job.begin(now))
    for kind, which, status, passed in events:
        if job.status is not None:
            break
        now += passed
        alive = sorted(running)
        if kind == "end" and alive:
            task = alive[which % len(alive)]
            running.discard(task)
            perform(job.ended(task, status, now))
        elif kind == "interrupt":
            perform(job.interrupt(signal.SIGINT, now))
        elif kind == "tick":
            perform(job.tick(now))
        elif kind == "progress":
            if alive:
                job.progressed(alive[which % len(alive)])
    if job.status is None:
        perform(job.interrupt(signal.SIGTERM, now))
    for _ in range(200):
        if job.status is not None:
            break
        if killed & running:
            task = min(killed & running)
            running.discard(task)
            perform(job.ended(task, -9, now))
        else:
            assert job.next_time is not None
            now = max(now, job.next_time)
            perform(job.tick(now))
    assert job.status is not None and not running
    assert all(count <= restarts + 1 for count in starts.values())
