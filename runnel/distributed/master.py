"""A master, a role of any task: plans a session's steps over all tasks, and runs them.

It prunes a step, places it on the devices of all tasks, and cuts it into a part for each task. It
sends a part to its task once; then a step is one small message to each task that has a part, and
one back. The thread that called runs the part of the master's own task.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import secrets
import threading
import weakref
from collections.abc import Collection, Sequence
from typing import Any

from runnel.distributed import wire
from runnel.distributed.messages import PartEnded
from runnel.distributed.protocol.worker_pb2 import Envelope, Register
from runnel.distributed.session_tasks import SessionTasks
from runnel.distributed.step_parts import ClusterPlan, ClusterStep, StepPart, lost_error
from runnel.distributed.step_rendezvous import task_of
from runnel.graph import errors
from runnel.graph.device_set import DeviceSet, LogicalDevice
from runnel.graph.operation import Operation, Tensor
from runnel.passes.placement.bundles import bundle
from runnel.passes.placement.node_devices import devices_of_nodes, hand_on_where_made
from runnel.passes.placement.part_graph import part_graph
from runnel.passes.placement.partition import partition
from runnel.passes.program.prune import prune
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.session import settings
from runnel.runtime.session.partial_run import PartialRun
from runnel.runtime.state.options import SessionOptions
from runnel.runtime.state.random_streams import RandomStreams
from runnel.runtime.state.task_state import TaskState

logger = logging.getLogger("runnel")


class MasterSession:
    """What a session on a cluster plans and runs with."""

    def __init__(self, server: Any, config: Any) -> None:
        """``server`` is the task whose master this is."""
        self.server = server
        self.number = secrets.randbits(63) | 1
        self._options = SessionOptions.from_config(config)
        self._isolated = bool(config is not None and config.isolate_session_state)
        self._tasks = SessionTasks(server, config, self._open_on, lambda: self.closed)
        self.addresses = self._tasks.addresses
        self.channels = self._tasks.channels
        # Guards the tables of steps and parts.
        self.lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._part_numbers = itertools.count(1)
        self.running: dict[int, ClusterStep] = {}
        self.ended_steps = 0
        """How many steps have ended, whichever way."""
        self._discarded: list[tuple[str, int]] = []
        """Parts of plans that are gone, by task; changed by single operations only."""
        self.closed: str | None = None
        self._opened_on: dict[Any, None] = {}
        """The channels to tasks that were told of the session, whether or not they answered."""
        soft = bool(config is not None and config.allow_soft_placement)
        log = bool(config is not None and config.log_device_placement)
        server.masters[self.number] = self
        server.host.open_here(self._created())
        try:
            server.require_running()  # after the session can be seen: stopping misses none
            self._tasks.meet_reachable()
            devices = DeviceSet(self._tasks.devices())
            self.devices = SessionDevices(devices, soft, log, automatic=False)
        except BaseException:
            self.close("the session could not be made")
            raise

    def _open_on(self, channel: Any) -> Any:
        """Makes the session known to a task, and asks it whether it has heard.

        A value from one task may come to another before what this master says to it: so all that
        have a part of a step have to know of the session before.
        """
        self._opened_on[channel] = None
        channel.send(self._created())
        asked = self.server.question(channel, "ready")
        if self.closed is not None:  # who has closed it may have told this task before
            channel.send(self._over(), wait=False)
        return asked

    def _created(self) -> Envelope:
        message = Envelope()
        message.create_session.session = self.number
        message.create_session.isolated = self._isolated
        return message

    def _meet(self, tasks: Sequence[str]) -> None:
        """Waits for tasks that did not answer when the session was made."""
        if tasks:
            self._tasks.meet(tasks)
            self.devices.widen(DeviceSet(self._tasks.devices()))

    @property
    def resources(self) -> Any:
        """What the steps of this session share on this task."""
        return self._state.resources

    @property
    def streams(self) -> RandomStreams:
        """Those of its steps on this task."""
        return self._state.streams

    @property
    def _state(self) -> TaskState:
        hosted = self.server.host.sessions.get(self.number)
        if hosted is None:
            raise errors.CancelledError(None, None, f"The session is over: {self.closed}")
        return hosted.state  # type: ignore[no-any-return]

    def keeps(self, op: Operation) -> bool:
        """Whether ``op``, by itself, is placed on the task of this session."""
        program = prune([], [op], [], ())
        self._meet(self._tasks.needed(program.nodes))
        placement = self.devices.placement([node.op for node in program.nodes], program)
        device_of = devices_of_nodes(program, placement)
        return all(
            task_of(device.name) == self.server.task
            for node, device in device_of.items()
            if node.op is op
        )

    # Planning -------------------------------------------------------------------------------

    def reach(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        done: Collection[Operation] = (),
    ) -> None:
        """Waits for tasks that a step needs, and that have not been met."""
        if self._tasks.unmet:
            self._meet(self._tasks.needed(prune(fetches, targets, feeds, done).nodes))

    def plan(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[Tensor],
        done: Collection[Operation],
        precision: Any,
    ) -> ClusterPlan:
        """A step, cut into parts that their tasks have been given."""
        self._forget_discarded()
        program = prune(fetches, targets, feeds, done)
        self._meet(self._tasks.needed(program.nodes))
        devices = self.devices
        placement = devices.placement([node.op for node in program.nodes], program)
        devices.note_placement(program, placement)
        device_of = devices_of_nodes(program, placement)
        part_of = {node: task_of(device.name) for node, device in device_of.items()}
        hand_on_where_made(program, device_of, part_of)
        found = partition(program, device_of, part_of)
        bundle(found)
        parts = []
        for task, part in found.parts.items():
            number = next(self._part_numbers)
            written = part_graph(part)
            message = Register(
                session=self.number,
                part=number,
                graph_def=written.graph_def.SerializeToString(),
                fetches=list(written.fetches.values()),
                feeds=list(written.feeds.values()),
                jit=self._options.jit,
                optimizer=self._options.optimizer,
                raises=self._options.raises,
                precision=wire.enum_of(self._options.precision or precision),
                tensor_float_32=(
                    settings.current.tensor_float_32
                    if self._options.tensor_float_32 is None
                    else self._options.tensor_float_32
                ),
                peers={t: a for t, a in self.addresses.items() if t in found.parts},
            )
            parts.append(StepPart(number, task, tuple(written.feeds), tuple(written.fetches)))
            envelope = Envelope()
            envelope.register.CopyFrom(message)
            try:
                self._tell_task(task, envelope)
            except (errors.UnavailableError, errors.AbortedError) as error:
                where = {node.op: device for node, device in device_of.items()}
                raise lost_error(task, error, where) from error
        values = [program.feeds[tensor] for tensor in feeds]
        build = fetches, targets, feeds, frozenset(done)
        plan = ClusterPlan(self, parts, feeds, values, program.fetches, fetches, device_of, build)
        # Whatever ends a plan's life, on whichever thread, only notes it.
        weakref.finalize(plan, self._discarded.extend, [(p.task, p.number) for p in parts])
        return plan

    def _forget_discarded(self) -> None:
        """Tells tasks of parts that will not run again."""
        by_task: dict[str, list[int]] = {}
        while self._discarded:
            task, number = self._discarded.pop()
            by_task.setdefault(task, []).append(number)
        for task, numbers in by_task.items():
            envelope = Envelope()
            envelope.forget.session = self.number
            envelope.forget.parts.extend(numbers)
            with contextlib.suppress(errors.OpError):  # it is lost, and so are its parts
                self._tell_task(task, envelope)

    def _tell_task(self, task: str, envelope: Envelope) -> None:
        if task == self.server.task:
            self.server.host.open_here(envelope)
        else:
            self.channel(task).send(envelope)

    def channel(self, task: str) -> Any:
        """The channel to the life of ``task`` that this session began with."""
        channel = self.channels[task]
        if channel.error is None:
            return channel
        other = self.server.peers.known(task)
        if other is not None and other.incarnation == channel.incarnation:
            # The connection was lost, and with it what the session had there.
            raise self._gone(task, "the connection to it was lost meanwhile")
        if other is not None:
            raise self._gone(task, "it was started anew")
        raise _unavailable(task, channel.error)

    @staticmethod
    def _gone(task: str, why: str) -> errors.AbortedError:
        error = errors.AbortedError(
            None,
            None,
            f"The session has lost its state on {task}: {why}. Make a new session, and restore "
            "its variables",
        )
        error.task = task  # type: ignore[attr-defined]
        return error

    # Running --------------------------------------------------------------------------------

    def begin(self, step: ClusterStep) -> tuple[int, int]:
        """The number of a step that begins, and that of the oldest that runs."""
        with self.lock:
            if self.closed is not None:
                raise errors.CancelledError(None, None, f"The step was cancelled: {self.closed}")
            number = next(self._numbers)
            self.running[number] = step
            return number, next(iter(self.running))

    def end(self, number: int) -> None:
        """A step is over."""
        with self.lock:
            if self.running.pop(number, None) is not None:
                self.ended_steps += 1

    def ended(self, channel: Any, message: PartEnded, values: list[Any]) -> None:
        """A task tells that its part of a step has ended; ``values``: fetched, then sent last."""
        step = self.running.get(message.step)
        if step is None:
            return
        count = message.fetched
        # Who waits is woken when all is said: woken before, it would wait for this thread.
        step.part_ended(message, values[:count])
        if message.last is not None:
            self.server.host.deliver(channel, message.last, values[count:])
        step.rouse()

    def lost(self, channel: Any, error: Exception) -> None:
        """A task cannot be reached any more."""
        task = channel.task
        if self.channels.get(task) is not channel:
            return
        with self.lock:
            running = list(self.running.values())
        for step in running:
            step.task_lost(task, _unavailable(task, error))

    def partial_run(self, session: Any, fetches: Any, feeds: list[Any]) -> PartialRun:
        """A step of ``session`` that is fed and fetched in several parts."""
        return PartialRun(session, fetches, feeds)

    def list_devices(self) -> list[LogicalDevice]:
        """The devices of the cluster that this session may use."""
        self._meet(self._tasks.unmet)
        return list(self.devices.devices)

    def reset(self, containers: Sequence[str]) -> None:
        """Clears containers on all tasks."""
        self._meet(self._tasks.unmet)
        for channel in list(self.channels.values()):
            self.server.answer_of(self.server.question(channel, "reset", containers))
        self.server.host.state.clear(list(containers) or None)

    def close(self, why: str = "the session was closed") -> None:
        """Forgets the session everywhere; steps that run are cancelled."""
        with self.lock:
            if self.closed is not None:
                return
            self.closed = why
            running = list(self.running.values())
        if self.server.masters.pop(self.number, None) is not None:
            self.server.steps_of_closed += self.ended_steps
        for channel in list(self._opened_on):
            try:
                channel.send(self._over(), wait=False)
            except errors.OpError as error:
                logger.debug("A task could not be told of a closed session: %s", error)
        self.server.host.open_here(self._over())
        # From here on nobody tells this master anything, so a step would wait for ever.
        for step in running:
            step.context.cancel(why)

    def _over(self) -> Envelope:
        message = Envelope()
        message.close_session.session = self.number
        return message


def _unavailable(task: str, error: Any) -> errors.UnavailableError:
    message = error.message if isinstance(error, errors.OpError) else str(error)
    found = errors.UnavailableError(None, None, message)
    found.task = task  # type: ignore[attr-defined]
    return found
