"""Who is started, started anew and ended when: a pure state machine that every engine can use.

Events come in with the time at which they happened, instructions go out; nothing here starts a
process or waits. The rules:

- the job succeeds when all workers (and the chief) have ended with status 0; then the parameter
  servers are told to end, and an evaluator has some time to end by itself;
- the chief (or ``worker:0``) ends with status 0 when training is complete. From then on nobody is
  started anew, and a worker that is known to have made no step in its life, so that it may wait for
  the chief, is ended after some time: such ends do not count;
- a task that dies is started anew, as often as is allowed: at once if somebody has killed it, but
  after a pause that grows if it fails by itself, again and again, shortly after its start and
  without a step. The count of restarts begins again when the task has lived for
  ``HEALTHY_SECONDS``;
- a task that ends with an error shortly after its first start, before any step was made, is a
  mistake in the program, and ends the job. So does one that has died too often;
- when the job is to end, workers are told first, so that they can save while the parameter servers
  are there; the parameter servers when no worker is left. Who does not end in time is killed.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field

from runnel.launch.task_layout import EVALUATOR, SERVERS, LaunchedTask

EARLY_SECONDS = 10.0
"""A first life that ends with an error within this time shows a mistake in the program."""
HEALTHY_SECONDS = 600.0
"""A life that was longer than this begins the count of restarts again."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
SERVER_SECONDS = 5.0
"""How long a parameter server may take to end, when no worker is left."""


@dataclass(frozen=True, slots=True)
class StartTask:
    """The task has to be started; ``life`` is 0 for the first time."""

    task: LaunchedTask
    life: int


@dataclass(frozen=True, slots=True)
class SignalTask:
    """A signal has to be sent to the task."""

    task: LaunchedTask
    number: signal.Signals


@dataclass(frozen=True, slots=True)
class TellUser:
    """The user should read this."""

    text: str


LaunchInstruction = StartTask | SignalTask | TellUser


@dataclass(slots=True)
class _Supervised:
    """What is known of one task."""

    life: int = -1
    started_at: float = 0.0
    runs: bool = False
    done: bool = False  # it will not be started again
    stepped: bool = False  # in this life, as far as is known; by anybody, for a parameter server
    restarts: int = 0
    futile: int = 0  # short lives without a step, one after the other
    start_at: float | None = None
    signals: list[tuple[float, signal.Signals]] = field(default_factory=list)


class JobSupervisor:
    """Decides over the tasks of one job; see the module."""

    def __init__(
        self, tasks: Sequence[LaunchedTask], restarts: int = 3, grace: float = 20.0
    ) -> None:
        self._tasks = {task: _Supervised() for task in tasks}
        self._restarts = restarts
        self._grace = grace
        self._progressed = False
        self._chief = next((task for task in tasks if task.decides), None)
        self._result: int | None = None  # how the job ends, once that is decided
        self._hurried = False

    @property
    def status(self) -> int | None:
        """The status of the job when all of its tasks have ended; None before."""
        ended = self._result is not None and not any(t.runs for t in self._tasks.values())
        return self._result if ended else None

    @property
    def ending(self) -> bool:
        """True once it is decided how the job ends."""
        return self._result is not None

    @property
    def next_time(self) -> float | None:
        """When :meth:`tick` has something to do next."""
        times = [t.start_at for t in self._tasks.values() if t.start_at is not None]
        times += [t.signals[0][0] for t in self._tasks.values() if t.runs and t.signals]
        return min(times, default=None)

    # Events ---------------------------------------------------------------------------------

    def begin(self, now: float) -> list[LaunchInstruction]:
        """The job begins."""
        return [self._start(task, now) for task in self._tasks]

    def progressed(self, task: LaunchedTask) -> None:
        """A task has made another step in this life of its."""
        self._progressed = self._tasks[task].stepped = True
        for other, known in self._tasks.items():
            if other.job == SERVERS:
                known.stepped = True
        if self._result is None:
            self._tasks[task].signals.clear()  # it does not wait for the chief

    def ended(self, task: LaunchedTask, status: int, now: float) -> list[LaunchInstruction]:
        """A task has ended; ``status`` is negative for the number of a signal that killed it."""
        known = self._tasks[task]
        known.runs = False
        known.signals.clear()
        if self._result is not None:
            return self._end_servers(now)
        if status == 0 and task.job != SERVERS:
            known.done = True
            told = TellUser(f"{task} is done")
            if task == self._chief:
                self._end_who_waits(now)
        elif self._complete and task.decides:
            known.done = True
            told = TellUser(f"{task} {_end_text(status)}; the chief is done")
        else:
            return self._died(task, known, status, now)
        if all(t.done for name, t in self._tasks.items() if name.decides):
            return [told, *self._succeeded(now)]
        return [told]

    def tick(self, now: float) -> list[LaunchInstruction]:
        """Time has passed."""
        found: list[LaunchInstruction] = []
        for task, known in self._tasks.items():
            if known.start_at is not None and known.start_at <= now:
                found.append(self._start(task, now))
            while known.runs and known.signals and known.signals[0][0] <= now:
                number = known.signals.pop(0)[1]
                if number == signal.SIGKILL:
                    found.append(TellUser(f"{task} did not end in time: it is killed"))
                found.append(SignalTask(task, number))
        return found

    def finish(self, now: float) -> list[LaunchInstruction]:
        """Somebody else knows that the workers are done."""
        if self._result is not None:
            return []
        return [TellUser("the workers are done"), *self._succeeded(now)]

    def interrupt(self, number: signal.Signals, now: float) -> list[LaunchInstruction]:
        """The user wants the job to end; the second time, at once."""
        if self._result is None:
            self._result = 128 + number
            return [
                TellUser(f"{number.name}: the tasks have {self._grace:g} s to end"),
                *self._end_workers(now, number),
            ]
        if self._hurried:
            return []
        self._hurried = True
        running = [task for task, known in self._tasks.items() if known.runs]
        return [
            TellUser(f"{number.name}: the tasks are killed"),
            *(SignalTask(task, signal.SIGKILL) for task in running),
        ]

    # Decisions ------------------------------------------------------------------------------

    @property
    def _complete(self) -> bool:
        """True when the chief is done."""
        return self._chief is not None and self._tasks[self._chief].done

    def _end_who_waits(self, now: float) -> None:
        """The chief is done: nobody else begins, or waits for it longer than the grace period."""
        for task, known in self._tasks.items():
            if not task.decides or known.done:
                continue
            known.start_at = None
            known.done = not known.runs
            if self._progressed and not known.stepped:
                known.signals = self._ladder(now + self._grace, signal.SIGTERM)

    def _start(self, task: LaunchedTask, now: float) -> StartTask:
        known = self._tasks[task]
        known.life += 1
        known.started_at, known.start_at = now, None
        known.runs, known.stepped = True, False
        return StartTask(task, known.life)

    def _died(
        self, task: LaunchedTask, known: _Supervised, status: int, now: float
    ) -> list[LaunchInstruction]:
        lived = now - known.started_at
        if lived >= HEALTHY_SECONDS:
            known.restarts = 0
        early = known.life == 0 and lived < EARLY_SECONDS and not self._progressed
        why = f"{task} {_end_text(status)}"
        if task.job == EVALUATOR and (status > 0 and early or known.restarts >= self._restarts):
            known.done = True
            return [TellUser(f"{why}: the job goes on without it")]
        if status > 0 and early:
            why += f", {lived:.1f} s after its first start: the job ends"
        elif known.restarts >= self._restarts:
            why += f", after {known.restarts} restarts of {self._restarts} allowed: the job ends"
        else:
            pause = 0.0
            if known.stepped or lived >= EARLY_SECONDS:
                known.futile = 0
            elif -status in (signal.SIGKILL, signal.SIGTERM):
                pass  # to wait would not help
            elif known.restarts:
                pause = min(FIRST_PAUSE * 2.0**known.futile, LONGEST_PAUSE)
                known.futile += 1
            known.restarts += 1
            known.start_at = now + pause
            when = f" in {pause:g} s" if pause else ""
            count = f"{known.restarts} of {self._restarts}"
            return [TellUser(f"{why}; it is started anew{when} ({count})")]
        self._result = exit_status(status) or 1
        return [TellUser(why), *self._end_workers(now, signal.SIGTERM)]

    def _succeeded(self, now: float) -> list[LaunchInstruction]:
        self._result = 0
        for task, known in self._tasks.items():
            known.start_at = None
            if known.runs and task.job == EVALUATOR:
                known.signals = self._ladder(now + self._grace, signal.SIGTERM)
        return self._end_servers(now, waits=False)

    def _end_workers(self, now: float, number: signal.Signals) -> list[LaunchInstruction]:
        for task, known in self._tasks.items():
            known.start_at = None
            if task.job != SERVERS:
                known.signals = self._ladder(now, number)
        return [*self.tick(now), *self._end_servers(now)]

    def _ladder(self, begin: float, number: signal.Signals) -> list[tuple[float, signal.Signals]]:
        """What is sent to a task until it ends: its step may wait for something that is gone."""
        return [
            (begin, number),
            (begin + self._grace / 2, signal.SIGINT),
            (begin + self._grace, signal.SIGKILL),
        ]

    def _end_servers(self, now: float, waits: bool = True) -> list[LaunchInstruction]:
        """Ends the parameter servers, if no other task needs them."""
        others = any(known.runs for task, known in self._tasks.items() if task.job != SERVERS)
        if waits and others:
            return []
        for task, known in self._tasks.items():
            if task.job == SERVERS and known.runs and not known.signals:
                known.signals = [(now, signal.SIGTERM), (now + SERVER_SECONDS, signal.SIGKILL)]
        return self.tick(now)


def exit_status(status: int) -> int:
    """What a shell calls a process's end: 128 and the signal's number if one killed it."""
    return 128 - status if status < 0 else status


def _end_text(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
