"""Which tasks a job has, and what each is told: pure, and the same for every engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SERVERS = "ps"
EVALUATOR = "evaluator"


@dataclass(frozen=True, slots=True, order=True)
class LaunchedTask:
    """A task of a job, such as ``worker:0``."""

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job}:{self.index}"

    @property
    def decides(self) -> bool:
        """True for a task whose end decides how the job has ended: a worker, or the chief."""
        return self.job not in (SERVERS, EVALUATOR)


@dataclass(frozen=True, slots=True)
class TaskLayout:
    """How many tasks of each kind a job has.

    With ``chief`` there is one more worker, in a job of its own of that name, as Estimators want;
    otherwise ``worker:0`` is the chief by convention. ``evaluator`` is a task that is not in the
    cluster: it watches checkpoints.

    Example:
        >>> [str(task) for task in TaskLayout(ps=1, workers=2).tasks()]
        ['ps:0', 'worker:0', 'worker:1']
    """

    ps: int = 0
    workers: int = 1
    chief: bool = False
    evaluator: bool = False

    def __post_init__(self) -> None:
        if self.ps < 0 or self.workers < 0:
            raise ValueError(f"A job cannot have {self.ps} ps and {self.workers} workers")
        if self.workers == 0 and not self.chief:
            raise ValueError("A job needs a worker, or a chief: they decide when it has ended")

    def jobs(self) -> dict[str, int]:
        """How many tasks each job of the cluster has, parameter servers first."""
        counts = {SERVERS: self.ps, "chief": int(self.chief), "worker": self.workers}
        return {job: count for job, count in counts.items() if count}

    def in_cluster(self) -> list[LaunchedTask]:
        """The tasks that have an address."""
        return [LaunchedTask(job, i) for job, count in self.jobs().items() for i in range(count)]

    def tasks(self) -> list[LaunchedTask]:
        """All tasks, in the order in which they are started."""
        evaluator = [LaunchedTask(EVALUATOR, 0)] if self.evaluator else []
        return self.in_cluster() + evaluator

    def cluster(self, addresses: Sequence[str]) -> dict[str, list[str]]:
        """The cluster as a dictionary, given an address for each task of :meth:`in_cluster`."""
        if len(addresses) != len(self.in_cluster()):
            raise ValueError(f"{len(self.in_cluster())} tasks cannot be at {list(addresses)}")
        found: dict[str, list[str]] = {}
        for task, address in zip(self.in_cluster(), addresses):
            found.setdefault(task.job, []).append(address)
        return found


def tf_config(cluster: Mapping[str, Any], task: LaunchedTask) -> str:
    """What the environment's ``TF_CONFIG`` says to ``task``."""
    return json.dumps(
        {"cluster": dict(cluster), "task": {"type": task.job, "index": task.index}},
        sort_keys=True,
    )


def told_arguments(
    arguments: Sequence[str], cluster: Mapping[str, Sequence[str]], task: LaunchedTask
) -> list[str]:
    """The program's arguments, with ``{job}``, ``{task}`` and ``{worker_hosts}`` filled in.

    For programs that take their cluster from flags: ``--job_name={job} --task_index={task}
    --ps_hosts={ps_hosts} --worker_hosts={worker_hosts}``. Other braces are left as they are.
    """
    known = {"{job}": task.job, "{task}": str(task.index)}
    for job in {SERVERS, "chief", "worker", *cluster}:
        known[f"{{{job}_hosts}}"] = ",".join(cluster.get(job, ()))
    found = []
    for argument in arguments:
        for name, value in known.items():
            argument = argument.replace(name, value)
        found.append(argument)
    return found


def shared_threads(cores: int, tasks: int) -> int:
    """How many threads each of ``tasks`` computes with, on a machine of so many cores."""
    return max(1, cores // max(1, tasks))
