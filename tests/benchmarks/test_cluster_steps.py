"""The steps of the cluster's benchmark run on all their workers."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest

from benchmarks.resident import Resident
from benchmarks.workloads import cluster

pytestmark = pytest.mark.timeout(120)


def test_every_worker_runs_its_steps():
    with Resident("runnel") as contender:
        contender.load(
            "benchmarks.workloads.cluster:null_step",
            {"frontend": "runnel", "kind": "add", "servers": 2, "workers": 2, "megabytes": 0.1},
        )
        contender.sample()
        assert contender.facts()["right"]


@pytest.mark.parametrize("program", ["input()", ""])
def test_a_worker_that_dies_is_an_error(program):
    arguments = [sys.executable, "-c", program]
    # A line that was not read cannot be written when the pipe is closed, either.
    with (
        contextlib.suppress(BrokenPipeError),
        subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        if not program:
            process.wait()
        tasks = cluster.OtherWorkers([process])
        with pytest.raises(RuntimeError, match="exit status 0"):
            tasks.begin(1)
            tasks.await_end()
