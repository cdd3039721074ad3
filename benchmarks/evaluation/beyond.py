"""Beyond the paper: what staleness does to convergence, and workers that come and go.

Both train the digit classifier of `examples/distributed_digits.py`, and look at its variables on
the parameter server from outside.
"""

from __future__ import annotations

import math
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.workloads.cluster import free_addresses
from benchmarks.workloads.training_job import Job, start_task

WORKERS = 4
STEP_SECONDS, SLOWER = 0.02, 5
"""A step waits so long, as for an accelerator of the worker's own; on one worker, so many times."""
BOUNDS = (0.0, 1.0, 4.0, math.inf)
PROGRAM = {"steps": 1_000_000, "batch_size": 50, "learning_rate": 0.003}
LOOK_SECONDS = 0.1
LEASE_SECONDS = 10.0
"""For so long those that wait for each other wait for a worker that has died."""


@contextmanager
def _observer(
    cluster: dict[str, list[str]], program: dict[str, Any]
) -> Iterator[Callable[[], tuple[float, int]]]:
    """A function that gives the loss on all training data and the global step."""
    import runnel as tf
    from examples import distributed_digits
    from runnel.datasets import digits

    data = digits.read_data_sets(one_hot=False).train
    with tf.Graph().as_default():
        task = distributed_digits.Task(cluster, "ps", 0)
        model = distributed_digits.build(task, 0, distributed_digits.Settings(**program))
        config = tf.ConfigProto(device_filters=["/job:ps"])
        with tf.Session(f"grpc://{cluster['ps'][0]}", config=config) as session:
            look = session.make_callable([model.loss, model.step], [model.images, model.labels])

            def seen() -> tuple[float, int]:
                loss, step = look(data.images, data.labels)
                return float(loss), int(step)

            yield seen


def staleness(seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """The loss against time and updates, by how far workers may be apart."""
    curves = []
    for bound in BOUNDS:
        program = {**PROGRAM, "coordination": "bounded", "staleness": bound}
        delays = [STEP_SECONDS] * (WORKERS - 1) + [STEP_SECONDS * SLOWER]
        job = Job(WORKERS, program, delays)
        try:
            job.begin()
            points = _followed(job.cluster, program, seconds)
        finally:
            job.end()
        say(f"  staleness {bound:g}: {points[-1][1]} updates, loss {points[-1][2]:.3f}")
        curves.append({"bound": None if math.isinf(bound) else bound, "points": points})
    about = {"workers": WORKERS, "step_seconds": STEP_SECONDS, "slower": SLOWER}
    return {**about, "curves": curves}


def _followed(
    cluster: dict[str, list[str]], program: dict[str, Any], seconds: float
) -> list[tuple[float, int, float]]:
    points = []
    with _observer(cluster, program) as seen:
        start = time.perf_counter()
        while (now := time.perf_counter() - start) < seconds:
            loss, step = seen()
            points.append((now, step, loss))
            time.sleep(LOOK_SECONDS)
    return points


def elasticity(seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Updates a second while a worker is added, and another is killed; each phase lasts so long."""
    return {
        "step_seconds": STEP_SECONDS,
        "runs": [
            _elastic("async", seconds, seconds, say),
            *(
                _elastic(coordination, seconds, seconds + LEASE_SECONDS, say)
                for coordination in ("sync", "backup", "bounded")
            ),
        ],
    }


def _elastic(
    coordination: str, seconds: float, last: float, say: Callable[[str], None]
) -> dict[str, Any]:
    program = {**PROGRAM, "coordination": coordination, "staleness": 4}
    slowed = {**program, "delay": STEP_SECONDS}
    addresses = free_addresses(1 + 3)
    cluster = {"ps": addresses[:1], "worker": addresses[1:]}
    tasks = [start_task(cluster, "ps", 0, program, "begin")]
    points: list[tuple[float, int]] = []
    events: list[tuple[float, str]] = []
    done = threading.Event()
    try:
        for index in range(2):
            tasks.append(start_task(cluster, "worker", index, slowed, "begin"))
        for task in tasks[1:]:
            _let_go(task)
        with _observer(cluster, program) as seen:
            start = time.perf_counter()

            def note(what: str) -> None:
                events.append((time.perf_counter() - start, what))

            def look() -> None:
                while not done.wait(LOOK_SECONDS):
                    step = seen()[1]
                    points.append((time.perf_counter() - start, step))

            looking = threading.Thread(target=look, daemon=True)
            looking.start()
            time.sleep(seconds)
            note("worker 2 is started")
            tasks.append(start_task(cluster, "worker", 2, slowed, "begin"))
            _let_go(tasks[-1])
            note("worker 2 trains")
            time.sleep(seconds)
            tasks[2].kill()
            note("worker 1 is killed")
            time.sleep(last)
            done.set()
            looking.join()
    finally:
        done.set()
        for task in tasks:
            task.kill()
        for task in tasks:
            task.communicate()
    say(f"  elastic, {coordination}: {points[-1][1]} updates; {events}")
    return {"coordination": coordination, "points": points, "events": events}


def _let_go(task: subprocess.Popen[str]) -> None:
    """Has a worker begin as soon as it can."""
    assert task.stdin is not None and task.stdout is not None
    task.stdin.write("go\n")
    task.stdin.flush()
    while (line := task.stdout.readline()) != "ready\n":
        if not line:
            raise RuntimeError("a worker ended before it began")
