"""A job on this machine: every task is a process, and this one looks after them."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from runnel.distributed.progress_record import VARIABLE as PROGRESS
from runnel.distributed.progress_record import ProgressRecord
from runnel.launch.job_folder import TOKEN, write_job_folder
from runnel.launch.launched_job import LaunchedJob
from runnel.launch.reserved_ports import ReservedPorts
from runnel.launch.task_layout import LaunchedTask, TaskLayout, shared_threads
from runnel.launch.task_process import TaskProcess
from runnel.launch.task_program import TaskProgram, thread_variables, token_variable
from runnel.threads import usable_cores

_JOIN_SECONDS = 5.0


def local(
    script: str,
    arguments: Sequence[str] = (),
    *,
    layout: TaskLayout,
    servers: bool = False,
    as_tensorflow: bool = False,
    restarts: int = 3,
    grace: float = 20.0,
    threads: int | None = None,
    watch: bool = False,
    console: Console | None = None,
    begun: float | None = None,
) -> int:
    """Runs a script on every task of a local cluster; returns the status of the job.

    The tasks get their cluster by ``TF_CONFIG``. With ``servers`` parameter servers are plain
    tasks, and only the others run the script. With ``as_tensorflow`` the script and its libraries
    get runnel for ``import tensorflow``. With ``watch`` a table of the tasks stays below the
    log. Called from a program's main thread, Ctrl-C and SIGTERM end all tasks.

    Example:
        >>> runnel.launch.local("train.py", ["--steps=100"], layout=TaskLayout(ps=1, workers=2))
        0
    """
    job = LocalJob(layout, restarts, grace, console, begun, above_page=watch)
    return job.run(TaskProgram(script, tuple(arguments), servers, as_tensorflow), threads, watch)


class LocalJob(LaunchedJob):
    """The processes of one job."""

    def run(self, program: TaskProgram, threads: int | None = None, watch: bool = False) -> int:
        """Starts the job and stays until all of its tasks have ended."""
        self._program = program
        self._running: dict[LaunchedTask, TaskProcess] = {}
        with (
            tempfile.TemporaryDirectory(prefix="runnel-job-") as folder,
            ReservedPorts(len(self.layout.in_cluster())) as ports,
        ):
            self._folder = Path(folder)
            self._cluster = self.layout.cluster([f"localhost:{port}" for port in ports.numbers])
            threads = threads or shared_threads(usable_cores(), len(self.tasks))
            self._environment = {
                **os.environ,
                **thread_variables(os.environ, threads),
                **token_variable(os.environ),
            }
            write_job_folder(self._folder, self._cluster, self._environment)
            self.log.tell(f"{len(self.tasks)} tasks; runnel cluster status --job {folder}")
            ports.release()
            try:
                with self._watched() if watch else contextlib.nullcontext():
                    return self.loop()
            finally:
                self._kill_all()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Within, the console shows the tasks below the log."""
        from runnel.launch.cluster_table import showing
        from runnel.launch.status_poller import StatusPoller

        names = [str(task) for task in self.layout.in_cluster()]
        addresses = [address for found in self._cluster.values() for address in found]
        given = os.environ.get(TOKEN)
        os.environ.update({TOKEN: self._environment[TOKEN]} if TOKEN in self._environment else {})
        try:
            with (
                StatusPoller(dict(zip(names, addresses))) as poller,
                showing(self.console, poller.rows, stays=False),
            ):
                yield
        finally:
            if given is None:
                os.environ.pop(TOKEN, None)

    def start(self, task: LaunchedTask) -> None:
        self._progress_path(task).unlink(missing_ok=True)  # of its former life
        self._running[task] = TaskProcess(
            self._program.command(self._cluster, task),
            {
                **self._environment,
                **self._program.variables(self._cluster, task),
                PROGRESS: str(self._progress_path(task)),
            },
            self.log.writer(str(task)),
            lambda status: self.ended(task, status),
        )

    def send_signal(self, task: LaunchedTask, number: signal.Signals) -> None:
        self._running[task].signal(number)

    def records(self) -> dict[LaunchedTask, ProgressRecord]:
        found = {task: ProgressRecord.read(self._progress_path(task)) for task in self.tasks}
        return {task: record for task, record in found.items() if record is not None}

    def _progress_path(self, task: LaunchedTask) -> Path:
        return self._folder / f"{task.job}-{task.index}.progress"

    def _kill_all(self) -> None:
        running = list(self._running.values())
        for process in running:
            process.signal(signal.SIGKILL)
        for process in running:
            process.join(_JOIN_SECONDS)
