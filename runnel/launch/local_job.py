"""A job on this machine: every task is a process, and this one looks after them."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from rich.console import Console

from runnel.launch.job_folder import TOKEN, write_job_folder
from runnel.launch.log_stream import LogStream
from runnel.launch.progress_record import VARIABLE as PROGRESS
from runnel.launch.progress_record import ProgressRecord
from runnel.launch.reserved_ports import ReservedPorts
from runnel.launch.step_account import StepAccount
from runnel.launch.supervisor import (
    JobSupervisor,
    LaunchInstruction,
    SignalTask,
    StartTask,
    TellUser,
)
from runnel.launch.task_layout import (
    SERVERS,
    THREAD_VARIABLES,
    LaunchedTask,
    TaskLayout,
    shared_threads,
    tf_config,
    told_arguments,
)
from runnel.launch.task_process import TaskProcess

_POLL_SECONDS = 0.1
_JOIN_SECONDS = 5.0


def local(
    script: str,
    arguments: Sequence[str] = (),
    *,
    layout: TaskLayout,
    servers: bool = False,
    restarts: int = 3,
    grace: float = 20.0,
    threads: int | None = None,
    console: Console | None = None,
    begun: float | None = None,
) -> int:
    """Runs a script on every task of a local cluster; returns the status of the job.

    The tasks get their cluster by ``TF_CONFIG``. With ``servers`` parameter servers are plain
    tasks, and only the others run the script. Called from a program's main thread, Ctrl-C and
    SIGTERM end all tasks.

    Example:
        >>> runnel.launch.local("train.py", ["--steps=100"], layout=TaskLayout(ps=1, workers=2))
        0
    """
    job = LocalJob(
        script, arguments, layout, servers, restarts, grace, threads, console, begun or time.time()
    )
    return job.run()


class LocalJob:
    """The processes of one job, and what they are told."""

    def __init__(
        self,
        script: str,
        arguments: Sequence[str],
        layout: TaskLayout,
        servers: bool,
        restarts: int,
        grace: float,
        threads: int | None,
        console: Console | None,
        begun: float,
    ) -> None:
        self._script, self._arguments = script, list(arguments)
        self._layout, self._servers = layout, servers
        self._tasks = layout.tasks()
        self._threads = threads or shared_threads(_cores(), len(self._tasks))
        console = console or Console()
        self._log = LogStream(console, map(str, self._tasks))
        self._supervisor = JobSupervisor(self._tasks, restarts, grace)
        self._account = StepAccount(begun)
        self._events: SimpleQueue[tuple[LaunchedTask, int] | signal.Signals] = SimpleQueue()
        self._running: dict[LaunchedTask, TaskProcess] = {}

    def run(self) -> int:
        """Starts the job and stays until all of its tasks have ended."""
        with (
            tempfile.TemporaryDirectory(prefix="runnel-job-") as folder,
            ReservedPorts(len(self._layout.in_cluster())) as ports,
            self._signals(),
        ):
            self._folder = Path(folder)
            self._cluster = self._layout.cluster(ports.addresses)
            self._environment = self._shared_environment()
            write_job_folder(self._folder, self._cluster, self._environment)
            self._log.tell(f"{len(self._tasks)} tasks; runnel cluster status --job {folder}")
            ports.release()
            try:
                return self._loop()
            finally:
                self._kill_all()

    def _loop(self) -> int:
        supervisor = self._supervisor
        self._perform(supervisor.begin(time.monotonic()))
        while supervisor.status is None:
            self._perform(self._next_event())
            self._look_at_progress()
            if self._log.broken and not supervisor.ending:
                self._perform(supervisor.interrupt(signal.SIGTERM, time.monotonic()))
        return supervisor.status

    def _next_event(self) -> list[LaunchInstruction]:
        due = self._supervisor.next_time
        now = time.monotonic()
        wait = _POLL_SECONDS if due is None else min(max(due - now, 0.0), _POLL_SECONDS)
        try:
            event = self._events.get(timeout=wait)
        except Empty:
            return self._supervisor.tick(time.monotonic())
        if isinstance(event, signal.Signals):
            return self._supervisor.interrupt(event, time.monotonic())
        task, status = event
        self._running.pop(task, None)
        return self._supervisor.ended(task, status, time.monotonic())

    def _perform(self, instructions: Sequence[LaunchInstruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, StartTask):
                self._start(instruction.task)
            elif isinstance(instruction, SignalTask):
                process = self._running.get(instruction.task)
                if process is not None:
                    process.signal(instruction.number)
            elif isinstance(instruction, TellUser):
                self._log.tell(instruction.text)

    def _look_at_progress(self) -> None:
        records: dict[LaunchedTask, ProgressRecord] = {}
        for task in self._tasks:
            record = ProgressRecord.read(self._progress_path(task))
            if record is not None:
                records[task] = record
        for text in self._account.observe(records):
            self._log.tell(text)
        for task in self._running:
            if task in records and records[task].runs:
                self._supervisor.progressed(task)

    # Tasks ----------------------------------------------------------------------------------

    def _start(self, task: LaunchedTask) -> None:
        self._look_at_progress()
        self._progress_path(task).unlink(missing_ok=True)  # of its former life
        command = [sys.executable, "-m", "runnel", "server"]
        if not (self._servers and task.job == SERVERS):
            command = [sys.executable] if self._script.endswith(".py") else []
            arguments = told_arguments(self._arguments, self._cluster, task)
            command += [self._script, *arguments]
        environment = {
            **self._environment,
            "TF_CONFIG": tf_config(self._cluster, task),
            PROGRESS: str(self._progress_path(task)),
        }
        self._running[task] = TaskProcess(
            command,
            environment,
            self._log.writer(str(task)),
            lambda status: self._events.put((task, status)),
        )

    def _shared_environment(self) -> dict[str, str]:
        found = dict(os.environ)
        for variable in THREAD_VARIABLES:
            found.setdefault(variable, str(self._threads))
        # Other users of this machine can reach loopback, too.
        if not found.get("RUNNEL_CLUSTER_TOKEN_FILE"):
            found.setdefault(TOKEN, secrets.token_hex(16))
        found["PYTHONUNBUFFERED"] = "1"
        return found

    def _progress_path(self, task: LaunchedTask) -> Path:
        return self._folder / f"{task.job}-{task.index}.progress"

    def _kill_all(self) -> None:
        running = list(self._running.values())
        for process in running:
            process.signal(signal.SIGKILL)
        for process in running:
            process.join(_JOIN_SECONDS)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Within, Ctrl-C and SIGTERM end the job, if this is the thread that gets them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [signal.SIGINT, signal.SIGTERM]
        if hasattr(signal, "SIGHUP"):
            numbers.append(signal.SIGHUP)
        before = {
            number: signal.signal(number, lambda n, _: self._events.put(signal.Signals(n)))
            for number in numbers
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
