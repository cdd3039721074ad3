"""A task on a machine of somebody else's cluster: what an engine's agent there does for the driver.

The driver calls; nothing here knows the engine. An agent that dies takes its process with it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runnel.distributed.progress_record import VARIABLE as PROGRESS
from runnel.distributed.progress_record import ProgressRecord
from runnel.launch.reserved_ports import ReservedPorts
from runnel.launch.task_process import TaskProcess

_MOST_LINES = 2000


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What has happened since the last report."""

    life: int
    lines: list[str]
    ended: int | None
    """The status, if the present life is over."""
    record: ProgressRecord | None


class HostedTask:
    """The port and the process of one task."""

    def __init__(self) -> None:
        self._ports: ReservedPorts | None = None
        self._process: TaskProcess | None = None
        self._lock = threading.Lock()  # guards what the process's threads add to
        self._lines: list[str] = []
        self._life, self._ended = -1, None
        self._progress = os.memfd_create("progress") if hasattr(os, "memfd_create") else -1

    def reserve(self, port: int = 0) -> int:
        """Keeps a port, a certain one if it is asked for; returns its number, 0 if it is taken."""
        if self._ports is not None and port in self._ports.numbers:
            return port
        try:
            self._ports = ReservedPorts(1, "0.0.0.0", port)  # noqa: S104 (it never listens)
        except OSError:
            return 0
        return self._ports.numbers[0]

    def start(self, life: int, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Begins a life, unless that was asked for before."""
        if life <= self._life:
            return
        if self._ports is not None:
            self._ports.release()
        variables = {**os.environ, **environment}
        if self._progress >= 0:
            os.ftruncate(self._progress, 0)
            variables[PROGRESS] = f"/proc/{os.getpid()}/fd/{self._progress}"
        self._life, self._ended = life, None
        self._process = TaskProcess(command, variables, self._said, self._note_end)

    def signal(self, number: int) -> None:
        """Sends a signal to the process."""
        if self._process is not None:
            self._process.signal(number)

    def report(self) -> TaskReport:
        """What has happened since this was last asked; never waits."""
        record = None
        if self._progress >= 0:
            record = ProgressRecord.from_bytes(os.pread(self._progress, 1 << 12, 0))
        with self._lock:
            lines, self._lines = self._lines[:_MOST_LINES], self._lines[_MOST_LINES:]
            ended = self._ended if not self._lines else None  # the last lines come first
        return TaskReport(self._life, lines, ended, record)

    def _said(self, line: str) -> None:
        with self._lock:
            self._lines.append(line)

    _ended: int | None

    def _note_end(self, status: int) -> None:
        with self._lock:
            self._ended = status
