"""A job goes on when a worker, its chief or a parameter server is killed: end to end."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import Counter

import pytest

import runnel as tf
from tests.launch.conftest import TRAINING, wait_until

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
]

LAST = 120


@pytest.fixture
def job(up, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(TRAINING)
    return up(
        *("--ps", 1, "--workers", 2, program, tmp_path / "model", LAST, tmp_path / "go_on"),
        RUNNEL_HEARTBEAT_SECONDS="3",
    )


def _pid(job, task: str) -> int:
    return int(job.wait_for(rf"^{task} +\| pid (\d+)")[0][1])


def _steps(
    job, since: str = "$^", of: str = "", until: int | None = None
) -> list[tuple[int, float]]:
    """Number and work after each step (of a task), in the order of the log, between two lines."""
    begin = max((i for i, line in enumerate(job.lines) if re.search(since, line)), default=0)
    found = (re.search(rf"^{of}.*step (\d+) work (\S+)$", line) for line in job.lines[begin:until])
    return [(int(match[1]), float(match[2])) for match in found if match]


@pytest.mark.parametrize("task", ["worker:1", "worker:0", "ps:0"])
def test_training_goes_on(job, task, tmp_path):
    job.wait_for(r"step (2[5-9]|[3-9]\d) work", 2)
    assert wait_until(lambda: tf.train.latest_checkpoint(str(tmp_path / "model")), 60), job.text()
    saved = tf.train.latest_checkpoint(str(tmp_path / "model"))
    os.kill(_pid(job, task), signal.SIGKILL)
    job.wait_for(rf"^{task} +\| pid", 2)
    if task == "ps:0":
        job.wait_for("training goes on")
    else:
        assert wait_until(lambda: _steps(job, since=rf"^{task} +\| pid", of=task), 60), job.text()
    (tmp_path / "go_on").touch()
    assert job.ended(120) == 0, job.text()
    text = job.text()
    assert f"{task} was killed by SIGKILL; it is started anew (1 of 3)" in text
    steps = _steps(job)
    # The last of two workers may come one step further. No step has counted twice, and none has
    # counted without its work: what was restored has as much of both.
    assert LAST <= max(number for number, _ in steps) <= LAST + 1
    assert {value - number for number, value in steps} == {0.0}
    newest = tf.train.latest_checkpoint(str(tmp_path / "model"))
    assert tf.train.load_variable(newest, "work") == tf.train.load_variable(newest, "global_step")
    lost = re.search(r"training goes on from step (\d+): (no|\d+) steps?", text)
    if task == "worker:1":
        assert lost is None  # its variables are where they were
        return
    assert lost is not None, text
    restored = int(lost[1])
    # What is lost was made twice.
    counts = Counter(number for number, _ in steps)
    furthest = max((number for number, count in counts.items() if count == 2), default=restored)
    if task == "worker:0":
        # While the chief was away, the other worker went on: nothing of that is lost either.
        anew = rf"^{task} +\| pid"
        others = _steps(job, of="worker:1", until=_last(job, anew))
        assert lost[2] == "no" and restored >= others[-1][0]
        assert max(counts.values()) == 1
        return
    # From the checkpoint that was the newest, or a later one that was then being written.
    assert int(saved.rpartition("-")[2]) <= restored <= furthest + 2
    # A step's own number and the one that is reported may differ by the other worker's step.
    assert abs((0 if lost[2] == "no" else int(lost[2])) - (furthest - restored)) <= 2


def _last(job, pattern: str) -> int:
    return max(i for i, line in enumerate(job.lines) if re.search(pattern, line))
