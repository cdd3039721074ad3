"""One task of a job on Slurm: ``srun`` starts this on every task, and it runs the task's program.

Nobody is above all tasks here but Slurm, so each looks after its own. A parameter server's program
has no end: it is ended when no worker can be reached any more.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence

from rich.console import Console

from runnel.distributed.progress_record import ProgressRecord
from runnel.distributed.security import split_address
from runnel.graph.errors import OpError
from runnel.launch.launched_job import LaunchedJob
from runnel.launch.slurm_environment import SlurmStep
from runnel.launch.status_poller import status_by_grpc
from runnel.launch.supervisor import LaunchInstruction, TellUser
from runnel.launch.task_layout import SERVERS, LaunchedTask, TaskLayout
from runnel.launch.task_process import TaskProcess
from runnel.launch.task_program import TaskProgram, thread_variables

_LOOK_SECONDS = 0.5
_CONNECT_SECONDS = 5.0
_JOIN_SECONDS = 5.0


def slurm(
    script: str,
    arguments: Sequence[str] = (),
    *,
    layout: TaskLayout,
    servers: bool = False,
    as_tensorflow: bool = False,
    restarts: int = 3,
    grace: float = 20.0,
    insecure: bool = False,
    environment: Mapping[str, str] = os.environ,
    console: Console | None = None,
) -> int:
    """Runs a script as the task that ``srun`` has made this process; returns the task's status."""
    cluster, task = SlurmStep.from_environment(environment).cluster(layout)
    variables = {**environment}
    cpus = environment.get("SLURM_CPUS_PER_TASK")
    if cpus:
        variables |= thread_variables(environment, int(cpus))
    if insecure:
        variables["RUNNEL_INSECURE"] = "1"
    job = SlurmJob(layout, restarts, grace, console, None, tasks=[task])
    return job.run(
        TaskProgram(script, tuple(arguments), servers, as_tensorflow), cluster, task, variables
    )


class SlurmJob(LaunchedJob):
    """The process of one task, and, for a parameter server, a look at the workers."""

    def run(
        self,
        program: TaskProgram,
        cluster: dict[str, list[str]],
        task: LaunchedTask,
        variables: dict[str, str],
    ) -> int:
        """Starts the task and stays until it has ended for good."""
        self._task, self._process = task, None
        self._command = program.command(cluster, task)
        self._variables = {**variables, **program.variables(cluster, task)}
        self._over = threading.Event()
        watcher = None
        if task.job == SERVERS:
            addresses = [a for job, found in cluster.items() if job != SERVERS for a in found]
            own = cluster[task.job][task.index]
            watcher = threading.Thread(target=self._watch, args=(own, addresses), daemon=True)
            watcher.start()
        try:
            return self.loop()
        finally:
            self._over.set()
            if self._process is not None:
                self._process.signal(signal.SIGKILL)
                self._process.join(_JOIN_SECONDS)
            if watcher is not None:
                watcher.join(_CONNECT_SECONDS)

    _process: TaskProcess | None

    def start(self, task: LaunchedTask) -> None:
        self._process = TaskProcess(
            self._command,
            self._variables,
            self.log.writer(str(task)),
            lambda status: self.ended(task, status),
        )

    def send_signal(self, task: LaunchedTask, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.signal(number)

    def records(self) -> dict[LaunchedTask, ProgressRecord]:
        return {}

    def interrupted(self, number: signal.Signals) -> list[LaunchInstruction]:
        if self._task.job != SERVERS or self._leaves:
            return super().interrupted(number)
        self._leaves = True  # Slurm tells all tasks at once, and the workers have to save
        return [TellUser(f"{number.name}: {self._task} ends when no worker is left")]

    _leaves = False

    def _watch(self, own: str, addresses: list[str]) -> None:
        """Has the task end when workers were there and have been away for the grace period.

        One that comes and goes between two looks has left its traces in the task itself, at
        ``own``. Those that were told to end are not coming back: one look is enough then.
        """
        seen, away_since = False, time.monotonic()
        told_at: float | None = None
        while not self._over.wait(_LOOK_SECONDS):
            now = time.monotonic()
            if any(map(_answers, addresses)):
                seen, away_since = True, now
            seen = seen or _was_used(own)
            if self._leaves and told_at is None:
                told_at = now
            away = now - away_since
            late = told_at is not None and now - told_at > self.grace
            if late or (away > 0 and self._leaves) or (seen and away > self.grace):
                self.finish()
                return


def _was_used(address: str) -> bool:
    """Whether the task there has run a part of a step."""
    if not _answers(address):
        return False
    ask, close = status_by_grpc(address)
    patience = threading.Timer(_CONNECT_SECONDS, close)
    patience.start()
    try:
        return int(json.loads(ask())["parts_ended"]) > 0
    except (OpError, ValueError, KeyError):
        return False
    finally:
        patience.cancel()
        close()


def _answers(address: str) -> bool:
    """Whether something listens there."""
    try:
        socket.create_connection(split_address(address), _CONNECT_SECONDS).close()
        return True
    except OSError:
        return False
