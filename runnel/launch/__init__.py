"""``runnel.launch``: a program on all the tasks of a cluster, by one call or one command.

Names are loaded when they are used: a task that only reports its progress loads nothing else, and
Ray is not imported unless it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {
    "TaskLayout": "runnel.launch.task_layout",
    "local": "runnel.launch.local_job",
    "ray": "runnel.launch.ray_job",
    "slurm": "runnel.launch.slurm_job",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'runnel.launch' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_WHERE)
