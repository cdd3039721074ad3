"""The tasks that a session's steps can use: met when it is made, or when a step needs them.

A new session does not wait for tasks that do not answer. One that was killed, and comes back, holds
up only the steps that need it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from concurrent.futures import wait
from functools import partial
from typing import Any

from runnel.graph import errors
from runnel.graph.device import parsed_device
from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation
from runnel.passes.program.program import Node
from runnel.runtime.state.in_thread import in_thread

PATIENCE = 600.0
"""For how many seconds a step, or who asks for all devices, waits for tasks that do not answer."""
MEETING_SECONDS = 1.0
"""For how many seconds a new session does."""


class SessionTasks:
    """The tasks of a cluster that a session may use, and the channels to those that it has met."""

    def __init__(
        self,
        server: Any,
        config: Any,
        open_on: Callable[[Any], Any],
        closed: Callable[[], str | None],
    ) -> None:
        """``server`` is the session's own task.

        ``open_on(channel)`` makes the session known to a task, and asks it whether it has heard;
        ``closed()`` says why the session is closed, if it is.
        """
        filters = [parsed_device(f) for f in config.device_filters] if config is not None else []
        self.addresses = {
            task: address
            for task, address in server.addresses.items()
            if task == server.task or not filters or any(_admits(f, task) for f in filters)
        }
        self.channels: dict[str, Any] = {}
        self._server = server
        self._open_on = open_on
        self._closed = closed
        self._patience = PATIENCE
        if config is not None and config.operation_timeout_in_ms > 0:
            self._patience = config.operation_timeout_in_ms / 1000

    @property
    def unmet(self) -> list[str]:
        """Those that have not been met."""
        return [
            task
            for task in self.addresses
            if task not in self.channels and task != self._server.task
        ]

    def meet_reachable(self) -> None:
        """Meets the tasks that answer now."""
        peers = self._server.peers
        found = {task: peers.known(task) for task in self.unmet}
        dialled = {
            task: in_thread(partial(peers.channel, task, self.addresses[task]), "runnel-meeting")
            for task, channel in found.items()
            if channel is None
        }
        limit = time.monotonic() + min(MEETING_SECONDS, self._patience)
        done, _ = wait(dialled.values(), timeout=limit - time.monotonic())
        for task, dialling in dialled.items():
            error = dialling.exception() if dialling in done else None
            if error is None:
                found[task] = dialling.result() if dialling in done else None
            elif not isinstance(error.__cause__, (OSError, EOFError)):
                raise error  # it is there, and cannot be used
        asked = {}
        for task, channel in found.items():
            with contextlib.suppress(errors.UnavailableError):  # lost in this moment
                if channel is not None:
                    asked[task] = self._open_on(channel)
        for task, question in asked.items():
            with contextlib.suppress(errors.UnavailableError, errors.DeadlineExceededError):
                self._server.answer_of(question, max(limit - time.monotonic(), 0.0))
                self.channels[task] = found[task]

    def meet(self, tasks: Iterable[str]) -> None:
        """Meets ``tasks``, which are waited for."""
        deadline = time.monotonic() + self._patience
        asked = {}
        for task in tasks:
            left = max(deadline - time.monotonic(), 0.0)
            channel = self._server.peers.channel(task, self.addresses[task], left, self._closed)
            asked[task] = channel, self._open_on(channel)
        for task, (channel, question) in asked.items():
            self._server.answer_of(question)
            self.channels[task] = channel

    def needed(self, nodes: Iterable[Node]) -> list[str]:
        """The tasks that have yet to be met for a step of ``nodes``."""
        unmet = self.unmet
        if not unmet:
            return []
        wishes = {wish for node in nodes for wish in _wishes(node.op)}
        found: dict[str, None] = {}
        for wish in map(parsed_device, wishes):
            if wish.job is None:
                continue
            admitted = [task for task in self.addresses if _admits(wish, task)]
            if all(task in unmet for task in admitted):
                found.update(dict.fromkeys(admitted))
        return list(found)

    def devices(self) -> list[LogicalDevice]:
        """The devices of all tasks that were met, those of the session's own task first."""
        found = list(self._server.devices)
        for task in self.addresses:
            channel = self.channels.get(task)
            if channel is None:
                continue
            for device in self._server.peers.devices[task]:
                found.append(
                    LogicalDevice(
                        device.name,
                        device.type,
                        parsed_device(device.name).device_index or 0,
                        device.memory,
                        f"{task}/{device.hardware}",
                        channel.incarnation,
                    )
                )
        return found


def _wishes(op: Operation) -> list[str]:
    """The devices that ``op`` has to be on, or those that it has to be with."""
    found = [op.device]
    for group in op.colocation_groups():
        other = op.graph._by_name.get(group.removeprefix(b"loc:@").decode())
        if other is not None and other is not op:
            found.append(other.device)
    return [device for device in found if device]


def _admits(wish: Any, task: str) -> bool:
    return wish.replace(device_type=None, device_index=None).admits(parsed_device(task))
