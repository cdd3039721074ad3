"""A job that runs: what every engine does with the tasks that it has started."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue

from rich.console import Console

from runnel.distributed.progress_record import ProgressRecord
from runnel.launch.log_stream import LogStream
from runnel.launch.step_account import StepAccount
from runnel.launch.supervisor import (
    JobSupervisor,
    LaunchInstruction,
    SignalTask,
    StartTask,
    TellUser,
)
from runnel.launch.task_layout import LaunchedTask, TaskLayout

_POLL_SECONDS = 0.1


class LaunchedJob(ABC):
    """Has an engine do what a supervisor decides, and tells the user; see :meth:`loop`."""

    def __init__(
        self,
        layout: TaskLayout,
        restarts: int,
        grace: float,
        console: Console | None,
        begun: float | None,
        tasks: Sequence[LaunchedTask] | None = None,
        above_page: bool = False,
    ) -> None:
        """``begun`` is when the user has started all this, in seconds since the epoch.

        ``tasks`` are those that this process looks after: by default all of them. With
        ``above_page`` the console shows a page, above which the log goes.
        """
        self.layout, self.grace = layout, grace
        self.tasks = layout.tasks() if tasks is None else list(tasks)
        self.console = console or Console()
        self.log = LogStream(self.console, map(str, self.tasks), above_page)
        self.account = StepAccount(time.time() if begun is None else begun)
        self._supervisor = JobSupervisor(self.tasks, restarts, grace)
        self._events: SimpleQueue[tuple[LaunchedTask, int] | signal.Signals | None] = SimpleQueue()
        self._alive: set[LaunchedTask] = set()

    # What an engine does --------------------------------------------------------------------

    @abstractmethod
    def start(self, task: LaunchedTask) -> None:
        """Begins a life of a task; :meth:`ended` has to be called when it is over."""

    @abstractmethod
    def send_signal(self, task: LaunchedTask, number: signal.Signals) -> None:
        """Sends a signal to a task that may just have ended."""

    @abstractmethod
    def records(self) -> dict[LaunchedTask, ProgressRecord]:
        """How far the tasks have come in their present lives; called often."""

    # What all of them share -----------------------------------------------------------------

    def ended(self, task: LaunchedTask, status: int) -> None:
        """Notes the end of a task's life; from any thread."""
        self._events.put((task, status))

    def finish(self) -> None:
        """Has the job end well, because others are done; from any thread."""
        self._events.put(None)

    def interrupted(self, number: signal.Signals) -> list[LaunchInstruction]:
        """What is to be done when the user wants the job to end."""
        return self._supervisor.interrupt(number, time.monotonic())

    def loop(self) -> int:
        """Runs the job until all of its tasks have ended; returns its status."""
        supervisor = self._supervisor
        with self._signals():
            self._perform(supervisor.begin(time.monotonic()))
            while supervisor.status is None:
                self._perform(self._next_event())
                self._look_at_progress()
                if self.log.broken and not supervisor.ending:
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
        if event is None:
            return self._supervisor.finish(time.monotonic())
        if isinstance(event, signal.Signals):
            return self.interrupted(event)
        task, status = event
        self._alive.discard(task)
        return self._supervisor.ended(task, status, time.monotonic())

    def _perform(self, instructions: Sequence[LaunchInstruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, StartTask):
                self._look_at_progress()  # what its former life has left
                self.start(instruction.task)
                self._alive.add(instruction.task)
            elif isinstance(instruction, SignalTask):
                self.send_signal(instruction.task, instruction.number)
            elif isinstance(instruction, TellUser):
                self.log.tell(instruction.text)

    def _look_at_progress(self) -> None:
        records = self.records()
        before = {task: self.account.record(task) for task in self._alive}
        for text in self.account.observe(records):
            self.log.tell(text)
        for task, known in before.items():
            record = records.get(task)
            if record is not None and record.runs and record != known:
                self._supervisor.progressed(task)

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
