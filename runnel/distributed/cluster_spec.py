"""``tf.train.ClusterSpec``: the jobs of a cluster, and the addresses of their tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class ClusterSpec:
    """The tasks of a cluster, by job and index.

    ``cluster`` maps names of jobs to lists of addresses, or, where only some tasks are to be known,
    to dictionaries from index to address; or it is a ``ClusterDef`` or another ``ClusterSpec``.

    Example:
        >>> cluster = ClusterSpec({"ps": ["ps0:2222"], "worker": {1: "worker1:2222"}})
        >>> cluster.task_address("worker", 1)
        'worker1:2222'
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            found: Any = cluster._tasks
        elif isinstance(cluster, Mapping):
            found = {job: _tasks(job, tasks) for job, tasks in cluster.items()}
        elif hasattr(cluster, "job"):  # a ClusterDef
            found = {job.name: dict(job.tasks) for job in cluster.job}
        else:
            raise TypeError(
                "A cluster is a dictionary from jobs to addresses, a ClusterDef or a ClusterSpec, "
                f"not {cluster!r}"
            )
        self._tasks: dict[str, dict[int, str]] = {
            _text(job): {int(i): _text(a) for i, a in sorted(tasks.items())}
            for job, tasks in sorted(found.items())
        }

    @classmethod
    def from_json(cls, text: str) -> ClusterSpec:
        """Reads ``{"ps": ["host:port"], "worker": {"1": "host:port"}}``."""
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError(f"A cluster is an object from jobs to addresses, not {text!r}")
        return cls(
            {
                job: {int(i): a for i, a in tasks.items()} if isinstance(tasks, dict) else tasks
                for job, tasks in found.items()
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """The cluster as a dictionary; a job whose tasks are all known has a list."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._tasks.items()
        }

    def as_cluster_def(self) -> Any:
        """The cluster as a ``ClusterDef``."""
        from tensorboard.compat.proto.cluster_pb2 import ClusterDef

        definition = ClusterDef()
        for job, tasks in self._tasks.items():
            definition.job.add(name=job).tasks.update(tasks)
        return definition

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._tasks)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks of a job are known."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The indices of the tasks of a job that are known."""
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task."""
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(
                f"No task with index {task_index} in job {job_name!r}; it has {list(tasks)}"
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of the tasks of a job by index, None for those that are not known."""
        tasks = self._job(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._tasks:
            raise ValueError(f"No such job in cluster: {name!r}; it has {', '.join(self._tasks)}")
        return self._tasks[name]

    def addresses(self) -> dict[str, str]:
        """Address by the full name of each task."""
        return {
            task_name(job, index): address
            for job, tasks in self._tasks.items()
            for index, address in tasks.items()
        }

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def __eq__(self, other: object) -> bool:
        return self._tasks == other._tasks if isinstance(other, ClusterSpec) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"


def task_name(job: str, index: int) -> str:
    """The name of a task in names of devices."""
    return f"/job:{job}/replica:0/task:{index}"


def _tasks(job: Any, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, list | tuple):
        return dict(enumerate(tasks))
    if isinstance(tasks, Mapping):
        return {_index(index): address for index, address in tasks.items()}
    raise TypeError(
        f"The tasks of job {job!r} must be a list of addresses or a dictionary from indices to "
        f"addresses, not {tasks!r}"
    )


def _index(index: Any) -> int:
    if isinstance(index, bool) or not isinstance(index, int):
        raise TypeError(f"The index of a task must be an integer, not {index!r}")
    return index


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"Names of jobs and addresses of tasks are text, not {value!r}")
    return value
