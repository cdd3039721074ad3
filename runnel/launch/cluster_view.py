"""What the tasks of a cluster tell of themselves, made into a table of rows (pure).

Rates are over the last seconds. *Staleness* is how many steps others make between two of a task's
own: that many updates its gradient has not seen. A *straggler* makes less than half the steps that
the median of the other workers makes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

WINDOW_SECONDS = 5.0
SILENT_SECONDS = 5.0
_SLOW = 0.5


@dataclass(frozen=True, slots=True)
class QueueLength:
    """A queue and how full it is; a negative capacity is none."""

    name: str
    size: int
    capacity: int


@dataclass(frozen=True, slots=True)
class TaskRow:
    """What is known of one task now; None where nothing is."""

    task: str
    address: str
    state: str
    """``up``, ``down``, or for how long it has been silent."""
    error: str = ""
    """Why it is not up."""
    incarnation: str = ""
    restarts: int = 0
    """How often it was seen to come back as another incarnation."""
    global_step: int | None = None
    steps_per_second: float | None = None
    staleness: float | None = None
    straggles: bool = False
    running: int = 0
    """Steps and parts of steps that run now."""
    waits_for: tuple[str, ...] = ()
    queues: tuple[QueueLength, ...] = ()
    memory_bytes: int = 0
    sent_per_second: float | None = None
    received_per_second: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)


@dataclass(slots=True)
class _Sample:
    at: float
    steps: int
    parts: int
    runs: int | None
    global_step: int | None
    sent: int
    received: int


@dataclass(slots=True)
class _Watched:
    name: str
    status: Mapping[str, Any] | None = None
    heard_at: float | None = None
    error: str = "it was not asked yet"
    restarts: int = 0
    samples: deque[_Sample] = field(default_factory=deque)


class ClusterView:
    """The latest of every task."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        """``addresses`` maps names of tasks to where they are."""
        self._tasks = {address: _Watched(name) for name, address in addresses.items()}

    def observe(self, address: str, status: Mapping[str, Any], now: float) -> None:
        """A task has told of itself."""
        known = self._tasks[address]
        before = known.status
        if before is not None and before["incarnation"] != status["incarnation"]:
            known.restarts += 1
            known.samples.clear()
        known.status, known.heard_at, known.error = status, now, ""
        known.name = _short_name(status["task"])
        progress = status.get("progress") or {}
        connections = status["connections"]
        sample = _Sample(
            now,
            status["steps_ended"],
            status["parts_ended"],
            progress.get("runs"),
            progress.get("step"),
            sum(c["sent_bytes"] for c in connections),
            sum(c["received_bytes"] for c in connections),
        )
        if known.samples and (sample.runs or 0) < (known.samples[-1].runs or 0):
            known.samples.clear()  # another session has begun
        known.samples.append(sample)
        while len(known.samples) > 2 and now - known.samples[1].at >= WINDOW_SECONDS:
            known.samples.popleft()

    def failed(self, address: str, error: str) -> None:
        """A task could not be asked."""
        known = self._tasks[address]
        known.error = error
        known.samples.clear()

    def rows(self, now: float) -> list[TaskRow]:
        """A row for each task, in the order in which they were named."""
        rows = [self._row(address, known, now) for address, known in self._tasks.items()]
        slow = _stragglers(rows)
        return [replace(row, straggles=row.task in slow) for row in rows]

    def _row(self, address: str, known: _Watched, now: float) -> TaskRow:
        status = known.status
        if known.error or status is None:
            return TaskRow(known.name, address, "down", known.error, restarts=known.restarts)
        silent = now - (known.heard_at or now)
        state = "up" if silent < SILENT_SECONDS else f"silent for {silent:.0f} s"
        running = [step for master in status["masters"] for step in master["steps"]]
        running += [step for session in status["sessions"] for step in session["steps"]]
        waits = dict.fromkeys(wait["op"] for step in running for wait in step["waits_for"])
        rates = _rates(known.samples)
        return TaskRow(
            known.name,
            address,
            state,
            incarnation=status["incarnation"],
            restarts=known.restarts,
            global_step=(status.get("progress") or {}).get("step"),
            steps_per_second=rates.get("steps"),
            staleness=rates.get("staleness"),
            running=len(running),
            waits_for=tuple(waits),
            queues=tuple(
                QueueLength(q["name"], q["size"], q["capacity"]) for q in status["queues"]
            ),
            memory_bytes=status["memory_bytes"],
            sent_per_second=rates.get("sent"),
            received_per_second=rates.get("received"),
        )


def _rates(samples: Sequence[_Sample]) -> dict[str, float]:
    """What happens in a second, of what is known."""
    if len(samples) < 2:
        return {}
    first, last = samples[0], samples[-1]
    seconds = max(last.at - first.at, 1e-6)
    found = {
        # A parameter server begins no steps: it has parts in those of others.
        "steps": ((last.steps - first.steps) or (last.parts - first.parts)) / seconds,
        # A connection that has ended is not counted any more.
        "sent": max(0, last.sent - first.sent) / seconds,
        "received": max(0, last.received - first.received) / seconds,
    }
    if first.runs is not None and last.runs is not None:
        runs = last.runs - first.runs
        found["steps"] = runs / seconds
        if runs and first.global_step is not None and last.global_step is not None:
            found["staleness"] = max(0.0, (last.global_step - first.global_step) / runs - 1)
    return found


def _stragglers(rows: Sequence[TaskRow]) -> set[str]:
    """The workers that are slow beside the others."""
    rates = {
        row.task: row.steps_per_second
        for row in rows
        if row.steps_per_second is not None and not row.task.startswith("ps:")
    }
    found = set()
    for task, rate in rates.items():
        others = [other for name, other in rates.items() if name != task]
        if others and rate < _SLOW * median(others):
            found.add(task)
    return found


def _short_name(task: str) -> str:
    """``worker:0`` of ``/job:worker/replica:0/task:0``."""
    parts = dict(part.split(":", 1) for part in task.split("/") if ":" in part)
    return f"{parts.get('job', task)}:{parts.get('task', '')}".rstrip(":")
