"""A job of `runnel up`, from the command to its first step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.interleaving import REPOSITORY, ContenderFailed, Sample, environment

PROGRAM = [str(REPOSITORY / "examples" / "distributed_digits.py"), "--steps", "1000000"]
TOLD = "the first step was made"


def started_jobs(servers: int, workers: int, count: int) -> list[Sample]:
    """Starts so many jobs, one after the other; before them one that only warms the disk up."""
    return [_started(servers, workers) for _ in range(count + 1)][1:]


def _started(servers: int, workers: int) -> Sample:
    """The seconds until the launcher tells of a step, and the CPU time of all processes by then."""
    command = [sys.executable, "-m", "runnel", "up", "--ps", str(servers)]
    begun = time.perf_counter()
    job = subprocess.Popen(
        [*command, "--workers", str(workers), *PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(),
        cwd=REPOSITORY,
        text=True,
    )
    assert job.stdout is not None
    said = ""
    try:
        for line in job.stdout:
            said += line
            if TOLD in line:
                return Sample(time.perf_counter() - begun, _cpu_of_tree(job.pid))
    finally:
        job.send_signal(signal.SIGINT)
        job.communicate()
    raise ContenderFailed(f"no step was made: {said[-300:]}")


def _cpu_of_tree(root: int) -> float:
    """The CPU time of a process and all that descend from it; 0 without `/proc`."""
    ticks, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        number = int(path.parent.name)
        parents[number] = int(fields[1])
        ticks[number] = int(fields[11]) + int(fields[12])
    family = {root}
    while grown := {n for n, parent in parents.items() if parent in family} - family:
        family |= grown
    return sum(ticks.get(number, 0) for number in family) / os.sysconf("SC_CLK_TCK")
