"""What a task of a job runs: its command, and the variables of its environment (pure)."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runnel.launch.job_folder import TOKEN
from runnel.launch.task_layout import SERVERS, LaunchedTask, tf_config, told_arguments

THREAD_VARIABLES = ("PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What XLA, oneDNN and NumPy's libraries take the number of their threads from."""


@dataclass(frozen=True, slots=True)
class TaskProgram:
    """A script that all tasks run; with ``servers``, all but the parameter servers."""

    script: str
    arguments: tuple[str, ...] = ()
    servers: bool = False
    as_tensorflow: bool = False
    """Whether it gets runnel for ``import tensorflow``, as by ``runnel run``."""

    def command(self, cluster: Mapping[str, Sequence[str]], task: LaunchedTask) -> list[str]:
        """The command of a task; a script that is no Python file is a program of its own."""
        if self.servers and task.job == SERVERS:
            return [sys.executable, "-m", "runnel", "server"]
        interpreter = [sys.executable] if self.script.endswith(".py") else []
        if self.as_tensorflow:
            interpreter = [sys.executable, "-m", "runnel", "run"]
        return [*interpreter, self.script, *told_arguments(self.arguments, cluster, task)]

    def variables(self, cluster: Mapping[str, Sequence[str]], task: LaunchedTask) -> dict[str, str]:
        """The variables that tell a task who it is."""
        return {"TF_CONFIG": tf_config(cluster, task), "PYTHONUNBUFFERED": "1"}


def thread_variables(given: Mapping[str, str], threads: int) -> dict[str, str]:
    """The variables that limit a task's threads, but for those that the user has given."""
    return {name: str(threads) for name in THREAD_VARIABLES if name not in given}


def token_variable(given: Mapping[str, str]) -> dict[str, str]:
    """A token for a job whose user has given none: other users can reach its tasks, too."""
    if given.get(TOKEN) or given.get(f"{TOKEN}_FILE"):
        return {}
    return {TOKEN: secrets.token_hex(16)}
