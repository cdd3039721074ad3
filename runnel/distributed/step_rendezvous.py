"""The rendezvous of a step over several tasks: values for other tasks leave in bundles.

All values that one task owes another at a moment travel in one message. They leave when the step
turns from sending to something else, or waits, or ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from runnel.distributed.messages import Bundle
from runnel.distributed.transport.connection import GivenUp
from runnel.graph.device import DeviceSpec, parsed_device
from runnel.queues.rendezvous import DEAD, Rendezvous
from runnel.runtime.state.step_context import StepContext

Ship = Callable[[str, Bundle, list[Any], GivenUp], None]
"""Sends a bundle with its values to the task of a name, unless that is given up meanwhile."""


class StepRendezvous(Rendezvous):
    """Where the values of one step on ``task`` meet, and leave."""

    def __init__(self, task: str, session: int, step: int, ship: Ship) -> None:
        super().__init__()
        self._task = task
        self._session = session
        self._step = step
        self._ship = ship
        self._leaving: dict[str, list[tuple[str, Any]]] = {}
        self._bundles = 0
        self.context: StepContext | None = None
        """The step as it runs here, once it does."""
        self.observer: Any = None
        """A :class:`StepTracer`, if the step is traced."""
        self.arrivals: dict[str, int] = {}
        """When what has come was put here: it may come before the step is known to be traced."""

    def send(self, key: str, value: Any, to: str) -> None:
        task = task_of(to)
        if task == self._task:
            self.put(key, value)
            return
        if self.error is not None:
            raise self.error
        self._leaving.setdefault(task, []).append((key, value))

    def put(self, key: str, sent: Any) -> None:
        self.arrivals[key] = time.perf_counter_ns()
        super().put(key, sent)

    def flush(self) -> None:
        if not self._leaving:
            return
        leaving, self._leaving = self._leaving, {}
        for task, values in leaving.items():
            self._ship(task, *self._bundled(values), partial(self._given_up, task))

    def _given_up(self, task: str) -> Exception | None:
        """Why the step needs nothing more, once it has failed or has to stop."""
        if self.error is not None or self.context is None:
            return self.error
        return self.context.stopped(f"what it sends to {task}, which is slow to read,")

    def last_for(self, task: str) -> tuple[Bundle, list[Any]] | None:
        """Takes what has yet to leave for ``task``, if there is anything, to be sent otherwise."""
        values = self._leaving.pop(task, None)
        return None if values is None else self._bundled(values)

    def _bundled(self, values: list[tuple[str, Any]]) -> tuple[Bundle, list[Any]]:
        keys: list[tuple[str, int]] = []
        flat: list[Any] = []
        if self.observer is not None:
            for key, value in values:
                if value is not DEAD:
                    gone = value if type(value) is tuple else (value,)
                    self.observer.departed(key, time.perf_counter_ns(), gone)
        for key, value in values:
            if type(value) is tuple:
                keys.append((key, len(value)))
                flat += value
            else:
                keys.append((key, 1))
                flat.append(value)
        number = self._bundles
        self._bundles += 1
        return Bundle(self._session, self._step, number, tuple(keys)), flat


@lru_cache(maxsize=4096)
def task_of(device: str) -> str:
    """The task that a device is of."""
    spec = parsed_device(device)
    return DeviceSpec(spec.job, spec.replica, spec.task).to_string()
