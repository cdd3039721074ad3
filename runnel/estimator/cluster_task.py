"""Which task of a cluster an Estimator is, as the environment's ``TF_CONFIG`` says."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from runnel.distributed.cluster_spec import ClusterSpec

CHIEF, MASTER, WORKER, SERVER, EVALUATOR = "chief", "master", "worker", "ps", "evaluator"
_TRAINS = (CHIEF, MASTER)
_TASKS = (CHIEF, MASTER, WORKER, SERVER, EVALUATOR)
_BEFORE_THE_WORKERS = 1
"""The chief is the first in the order of all tasks; then come workers, then parameter servers."""


@dataclass(frozen=True, slots=True)
class ClusterTask:
    """A task: of a cluster, or alone on its machine."""

    cluster_spec: ClusterSpec
    task_type: str = WORKER
    task_id: int = 0
    master: str = ""
    """Where its sessions run."""
    evaluation_master: str = ""
    num_ps_replicas: int = 0
    num_worker_replicas: int = 1
    global_id_in_cluster: int | None = 0
    is_chief: bool = True
    model_dir: str | None = None
    """Where the environment wants checkpoints, if it says so."""

    @property
    def is_in_cluster(self) -> bool:
        """True where there are other tasks."""
        return bool(self.cluster_spec.jobs)

    @classmethod
    def from_environment(cls) -> ClusterTask:
        """The task that ``TF_CONFIG`` describes; alone if there is none."""
        said = _said()
        own = said.get("task", {})
        task_type, task_id = str(own.get("type", WORKER)), int(own.get("index", 0))
        places: dict[str, Any] = {"model_dir": said.get("model_dir")}
        if not said.get("cluster"):
            if task_type not in (CHIEF, MASTER, WORKER, EVALUATOR):
                raise ValueError(f"TF_CONFIG has a task {task_type!r}, but no cluster")
            alone = task_type != EVALUATOR
            return cls(ClusterSpec({}), task_type, task_id, is_chief=alone, **places)
        spec = ClusterSpec(said["cluster"])
        chiefs = [job for job in _TRAINS if job in spec.jobs]
        if len(chiefs) != 1 or spec.num_tasks(chiefs[0]) != 1:
            raise ValueError(
                "The cluster of TF_CONFIG needs exactly one chief: a job 'chief' (or 'master') of "
                f"one task. Its jobs are {', '.join(map(repr, spec.jobs))}."
            )
        if "type" not in own or "index" not in own:
            raise ValueError(
                'TF_CONFIG has a cluster, but does not say which task this is: add "task": '
                '{"type": "worker", "index": 0}'
            )
        if task_type not in _TASKS or (task_type != EVALUATOR and task_type not in spec.jobs):
            raise ValueError(
                f"The task {task_type!r} of TF_CONFIG is none of {', '.join(_TASKS)}, or not in "
                "its cluster"
            )
        if task_type == EVALUATOR:  # beside the cluster: it looks at checkpoints only
            return cls(
                ClusterSpec({}), EVALUATOR, task_id, "", "", 0, 0, None, is_chief=False, **places
            )
        workers = _count(spec, WORKER)
        address = spec.task_address(task_type, task_id)
        before = {WORKER: _BEFORE_THE_WORKERS, SERVER: _BEFORE_THE_WORKERS + workers}
        return cls(
            spec,
            task_type,
            task_id,
            said.get("session_master") or f"{said.get('rpc_layer') or 'grpc'}://{address}",
            said.get("eval_session_master") or "",
            _count(spec, SERVER),
            workers + _BEFORE_THE_WORKERS,
            before.get(task_type, 0) + task_id,
            is_chief=task_type in _TRAINS,
            **places,
        )

    def device_filters(self) -> list[str]:
        """The tasks that sessions of this one need: a worker does not wait for another."""
        if not self.is_in_cluster or self.task_type == SERVER:
            return []
        return [f"/job:{SERVER}", f"/job:{self.task_type}/task:{self.task_id}"]


def _said() -> dict[str, Any]:
    try:
        found = json.loads(os.environ.get("TF_CONFIG") or "{}")
    except ValueError as error:
        raise ValueError(f"TF_CONFIG is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"TF_CONFIG must be a JSON object, not {found!r}")
    return found


def _count(spec: ClusterSpec, job: str) -> int:
    return spec.num_tasks(job) if job in spec.jobs else 0
