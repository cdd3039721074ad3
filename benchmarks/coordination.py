"""One model to one loss with four kinds of coordination, where one of four workers is slow; starts.

`python -m benchmarks.coordination` measures every kind and the start of a local cluster, `--quick`
once each; `--rows start` only some. The results go to `benchmarks/results/coordination.json`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

from benchmarks import command
from benchmarks.interleaving import Spread
from benchmarks.results import Row, now
from benchmarks.trial import SUBJECT, Settings
from benchmarks.workloads.launched_start import started_jobs
from benchmarks.workloads.training_job import Job

WORKERS = 4
STEP_SECONDS = 0.02
SLOWER = 5
"""A step waits so long, as for an accelerator of the worker's own; on one worker, so many times."""
LOSS = 0.15
DEADLINE = 300.0
WHAT = {
    "async": "asynchronous",
    "sync": "synchronous",
    "backup": "synchronous, the first 3 of 4",
    "bounded": "bounded staleness, 8 steps",
}
STARTED = [(1, 2), (2, 4)]
"""Parameter servers and workers of the jobs whose start is measured."""
STARTS = 5
START_SECONDS = 5.0
PROGRAM = {"steps": 1_000_000, "batch_size": 50, "learning_rate": 0.003, "staleness": 8}


class Reached(NamedTuple):
    """How a job came to the loss."""

    seconds: float
    updates: int
    dropped: int


def reach(coordination: str) -> Reached:
    """Runs a job until the loss on all training data is low enough."""
    program = {**PROGRAM, "coordination": coordination}
    delays = [STEP_SECONDS] * (WORKERS - 1) + [STEP_SECONDS * SLOWER]
    job = Job(WORKERS, program, delays)
    try:
        job.begin()
        return _watch(job.cluster, program)
    finally:
        job.end()


def _watch(cluster: dict[str, list[str]], program: dict[str, Any]) -> Reached:
    """Looks at the variables on the parameter server until they give the loss."""
    import runnel as tf
    from examples import distributed_digits
    from runnel.datasets import digits

    data = digits.read_data_sets(one_hot=False).train
    start = time.perf_counter()
    with tf.Graph().as_default():
        task = distributed_digits.Task(cluster, "ps", 0)
        model = distributed_digits.build(task, 0, distributed_digits.Settings(**program))
        config = tf.ConfigProto(device_filters=["/job:ps"])
        with tf.Session(f"grpc://{cluster['ps'][0]}", config=config) as session:
            look = session.make_callable(
                [model.loss, model.step, model.dropped], [model.images, model.labels]
            )
            while time.perf_counter() - start < DEADLINE:
                loss, updates, dropped = look(data.images, data.labels)
                if loss <= LOSS:
                    return Reached(time.perf_counter() - start, int(updates), int(dropped))
                time.sleep(0.02)  # the parameter server has other things to do
    raise TimeoutError(f"the loss is {loss} after {DEADLINE} s")


def measure(coordination: str, settings: Settings) -> tuple[Row, float]:
    """The row of a kind, and its time in seconds."""
    rounds = 1 if settings.rounds < 5 else 3
    found = [reach(coordination) for _ in range(rounds)]
    seconds = Spread.of(run.seconds for run in found)
    typical = sorted(found)[rounds // 2]
    row = Row(
        name=coordination,
        what=f"1 + {WORKERS}, one worker {SLOWER} times slower: {WHAT[coordination]}",
        unit="s",
        values={SUBJECT: seconds},
        notes=(f"{typical.updates} updates, {typical.dropped} steps of workers dropped",),
        measured=now(),
    )
    return row, seconds.median


def kinds(settings: Settings) -> list[Row]:
    """All four, beside plain synchronous training."""
    measured = {name: measure(name, settings) for name in WHAT}
    plain = measured["sync"][1]
    rows = []
    for name, (row, seconds) in measured.items():
        if name in ("backup", "bounded"):
            row = replace(row, must_show="faster than synchronous", passed=seconds < plain)
        rows.append(row)
    return rows


def start(settings: Settings) -> list[Row]:
    """`runnel up`, from the command to the end of the first step."""
    rows = []
    for servers, workers in STARTED:
        found = started_jobs(servers, workers, 1 if settings.rounds < 5 else STARTS)
        seconds = Spread.of(sample.wall for sample in found)
        cpu = Spread.of(sample.cpu for sample in found)
        rows.append(
            Row(
                name=f"start_{servers}_{workers}",
                what=f"`runnel up`, {servers} + {workers}: from the command to a first step's end",
                unit="s",
                values={SUBJECT: seconds},
                must_show=f"under {START_SECONDS:g} s",
                passed=seconds.median < START_SECONDS,
                notes=(f"{cpu.median:.1f} s of CPU time, all processes together",),
                measured=now(),
            )
        )
    return rows


ROWS = {"kinds": kinds, "start": start}

if __name__ == "__main__":
    command.run(
        "coordination",
        "Coordination",
        ROWS,
        command.parser_for(ROWS, "Four kinds of coordination to one loss; how a job starts."),
    )
