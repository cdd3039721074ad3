"""Parameter servers and workers as processes on this machine, told what to run and looked at."""

from __future__ import annotations

import json
import os
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.interleaving import REPOSITORY, environment, last_line
from benchmarks.results import cores
from benchmarks.workloads.cluster import free_addresses
from runnel.launch.task_program import THREAD_VARIABLES

MODULE = "benchmarks.workloads.evaluated_task"
DEADLINE = 180.0
FEWEST_STEPS = 5
"""Of each worker on average; a while in which fewer end is made longer, several times at most."""
LONGEST_TIMES = 6
MOST_WAITS = 400
"""How many of the accelerators' times are kept, for the simulation."""


class TaskFailed(Exception):
    """A task of the fleet has ended, failed or said nothing for too long."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a number of workers did in a while. JSON keeps it."""

    workers: int
    servers: int
    seconds: float
    steps: int
    """Of all workers."""
    durations: tuple[float, float, float, float]
    """The quartiles of the time of a worker's step, and the ninth decile."""
    updates: float
    """Synchronous updates a second; 0 of asynchronous training."""
    update_time: float
    """The median time between two of them."""
    worker_cpu: list[float]
    """Seconds of CPU that each worker took in a second."""
    server_cpu: list[float]
    others_cpu: float
    """The same of everything else on the machine: how much of it was not ours."""
    waits: list[float]
    """Times of accelerators."""

    @property
    def rate(self) -> float:
        """Steps a second, of all workers."""
        return self.steps / self.seconds

    @property
    def step_time(self) -> float:
        """Seconds in which each worker makes one step."""
        return self.workers * self.seconds / self.steps


class _Task:
    """A process, asked and answering in lines of JSON."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.name = f"{description['job']}:{description['index']}"
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the task)
        limits = {**dict.fromkeys(THREAD_VARIABLES, "1"), "RUNNEL_HEARTBEAT_SECONDS": "60"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", MODULE, json.dumps(description)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=REPOSITORY,
            env={**environment(), **limits},
        )

    def tell(self, what: str, **arguments: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise TaskFailed(f"{self.name} has ended: {self._complaint()}") from None

    def answer(self) -> Any:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(DEADLINE):
                raise TaskFailed(f"{self.name} said nothing for {DEADLINE:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise TaskFailed(f"{self.name} has ended: {self._complaint()}")
        answer = json.loads(line)
        if isinstance(answer, dict) and "failure" in answer:
            raise TaskFailed(f"{self.name} failed: {last_line(answer['failure'])}")
        return answer.get("answer") if isinstance(answer, dict) else answer

    def ended(self) -> str | None:
        """How the process has ended, if it has."""
        status = self.process.poll()
        return None if status is None else f"{self.name}: status {status}, {self._complaint()}"

    def _complaint(self) -> str:
        self._errors.seek(0)
        return last_line(self._errors.read())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._errors.close()


class Fleet:
    """The processes of a cluster; each run takes some of them, the others wait."""

    def __init__(self, frontend: str, servers: int, workers: int) -> None:
        addresses = free_addresses(servers + workers)
        cluster = {"ps": addresses[:servers], "worker": addresses[servers:]}
        self._runs = 0
        self._servers: list[_Task] = []
        self._workers: list[_Task] = []
        for job, tasks in (("ps", self._servers), ("worker", self._workers)):
            for index in range(len(cluster[job])):
                about = {"frontend": frontend, "cluster": cluster, "job": job, "index": index}
                tasks.append(_Task(about))

    def __enter__(self) -> Fleet:
        try:
            self._answers([*self._servers, *self._workers])
        except TaskFailed:
            self._kill()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._kill()

    def _kill(self) -> None:
        for task in [*self._servers, *self._workers]:
            task.kill()

    def observe(
        self, program: str, warm_up: float, seconds: float, **arguments: Any
    ) -> Observation:
        """Has the first ``workers`` run the program together, and looks at them for a while."""
        self._runs += 1
        count, servers = arguments["workers"], arguments["servers"]
        workers = self._workers[:count]
        # The first initialises what the others use.
        for some in (workers[:1], workers[1:]):
            self._all(some, "prepare", program=program, run=self._runs, arguments=arguments)
        self._all(workers, "begin")
        time.sleep(warm_up)
        before, begin = self._cpu_seconds(count, servers), time.perf_counter()
        enough = sum(self._all(workers, "count")) + FEWEST_STEPS * count
        for _ in range(LONGEST_TIMES):
            time.sleep(seconds)
            if sum(self._all(workers, "count")) >= enough:
                break
        after, end = self._cpu_seconds(count, servers), time.perf_counter()
        self._all(workers, "end_soon")
        self._all(workers[:1], "release")
        seen = self._all(workers, "results")
        self._all(workers, "forget")
        used = [(b - a) / (end - begin) for a, b in zip(before, after, strict=True)]
        return _observed(seen, begin, end, count, servers, used)

    def _all(self, workers: Sequence[_Task], what: str, **arguments: Any) -> list[Any]:
        for worker in workers:
            worker.tell(what, **arguments)
        return self._answers(workers)

    def _answers(self, tasks: Sequence[_Task]) -> list[Any]:
        try:
            return [task.answer() for task in tasks]
        except TaskFailed as failure:
            # What a worker complains of may be a server's end.
            ended = [task.ended() for task in [*self._servers, *self._workers]]
            raise TaskFailed("; ".join([str(failure), *filter(None, ended)])) from None

    def _cpu_seconds(self, workers: int, servers: int) -> list[float]:
        """Seconds of CPU so far: of each worker, of each server, of everything else."""
        tasks = [*self._workers[:workers], *self._servers[:servers]]
        used = [process_seconds(task.process.pid) for task in tasks]
        return [*used, machine_seconds() - sum(used)]


def _observed(
    seen: list[Any], begin: float, end: float, workers: int, servers: int, used: list[float]
) -> Observation:
    lasted: list[float] = []
    steps = 0
    for worker in seen:
        ends = [moment for moment in worker["ends"] if begin <= moment <= end]
        steps += len(ends)
        lasted += [b - a for a, b in zip(ends, ends[1:])]
    if len(lasted) < 2:
        raise TaskFailed(f"only {steps} steps ended in {end - begin:.1f} s")
    low, median, high = statistics.quantiles(lasted, n=4)
    waits = [wait for worker in seen for wait in worker["waits"]]
    updates = between_updates(
        moment
        for worker in seen
        for moment in zip(worker["ends"], worker["steps"])
        if begin <= moment[0] <= end
    )
    return Observation(
        workers=workers,
        servers=servers,
        seconds=end - begin,
        steps=steps,
        durations=(low, median, high, statistics.quantiles(lasted, n=10)[-1]),
        updates=len(updates) / (end - begin),
        update_time=statistics.median(updates) if updates else 0.0,
        worker_cpu=used[:workers],
        server_cpu=used[workers:-1],
        others_cpu=max(0.0, used[-1]),
        waits=waits[:: max(1, len(waits) // MOST_WAITS)],
    )


def between_updates(moments: Iterable[tuple[float, int]]) -> list[float]:
    """The times between updates, from when workers have seen which global step.

    >>> between_updates([(1.0, 3), (1.5, 3), (2.0, 4), (4.0, 6), (4.5, 5)])
    [1.0, 1.0, 1.0]
    """
    found: list[float] = []
    last: tuple[float, int] | None = None
    for moment, step in sorted(moments):
        if last is None:
            last = moment, step
        elif step > last[1]:
            found += [(moment - last[0]) / (step - last[1])] * (step - last[1])
            last = moment, step
    return found


_TICKS = os.sysconf("SC_CLK_TCK")


def process_seconds(pid: int) -> float:
    """Seconds of CPU that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def machine_seconds() -> float:
    """Seconds of CPU that the machine has not been idle for, taken by its host included."""
    user, nice, system, _, _, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS


def held_workers(most: int) -> int:
    """How many workers this machine holds: half of its free memory, at half a gigabyte each."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    [free] = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    return max(cores(), min(most, free // 2**20))
