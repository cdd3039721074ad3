"""Holds what a worker needs around it: its state, its plans, and the threads that run its steps.

A part that has been seen to take little time, and never waits on its thread, runs on the thread
that got the message, or that brought what it was waiting for. Any other runs on a thread of the
pool.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from runnel.distributed import wire
from runnel.distributed.messages import Bundle, Message, PartEnded, RunPart
from runnel.distributed.part_run import HostedPart, HostedSession, PartRun, function_planner
from runnel.distributed.step_rendezvous import Ship, StepRendezvous
from runnel.distributed.transport.backlog import Backlog
from runnel.distributed.transport.connection import GivenUp
from runnel.distributed.worker import (
    Discard,
    Drop,
    Instruction,
    Open,
    Prepare,
    Say,
    Start,
    Stop,
    Worker,
    WorkerStep,
)
from runnel.graph import errors
from runnel.queues.collective import Collectives
from runnel.queues.joint_calls import Fabric
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.schedule.task_transfers import route_key
from runnel.runtime.schedule.tracing import StepTracer
from runnel.runtime.session.subgraphs import Subgraphs
from runnel.runtime.state import at_exit
from runnel.runtime.state.step_context import RunningSteps, StepContext
from runnel.runtime.state.task_state import TaskState
from runnel.threads import Threads

logger = logging.getLogger("runnel")

INLINE_SECONDS = 0.005
"""A part that takes less runs on the thread that reads from the network."""
_GRACE = 5.0
"""Seconds that parts have to end by themselves when their task is stopped."""


class WorkerHost:
    """A worker with its state and its threads."""

    def __init__(
        self,
        task: str,
        devices: SessionDevices,
        ship: Callable[..., None],
        knows: Callable[[str], bool],
        backlog: Backlog,
    ) -> None:
        """``ship(task, address, message, values, wait)`` sends to a task of a name.

        With ``dials=False`` it fails at once if the task has to be dialled: ``knows(task)`` says
        whether it need not be.
        """
        self.task = task
        self.devices = devices
        self.state = TaskState()
        self._ship_to = ship
        self._knows = knows
        self._backlog = backlog
        self._worker = Worker(task, self._rendezvous)
        # Held while the state machine takes an event; never while a part runs or something is sent.
        self._lock = threading.Lock()
        self.sessions: dict[int, HostedSession] = {}
        self.runs: dict[WorkerStep, PartRun] = {}
        self.ended_parts = 0
        """How many parts of steps have ended here; changed under the lock."""
        self.threads = Threads("runnel-step")
        self._closed: str | None = None
        self._lost: weakref.WeakSet[Any] = weakref.WeakSet()
        """Channels that have ended; what had come through them may still be read."""
        self._reading = threading.local()
        # Guards _watched, and tells those who watch that a step has come to where it only waits.
        self._parked = threading.Condition()
        self._watched = 0
        _hosts.add(self)

    # Events ---------------------------------------------------------------------------------

    def receive(self, peer: Any, message: Message, values: Sequence[Any]) -> None:
        """A message for the worker, on the thread that reads from ``peer``."""
        if isinstance(message, Bundle) and not message.session:
            self._collect(peer, message, values)
            return
        roused: list[PartRun] = []
        self._reading.roused = roused
        try:
            with self._lock:
                if peer in self._lost:
                    return  # what its master had here is gone: nothing begins anew
                instructions = self._understood(peer, message, values)
            if instructions:
                self._perform(instructions, wait=False)
            while roused:
                run = roused.pop()
                if self._runs_inline(run.part):
                    run.drive()
                else:
                    self.threads.run(run.drive)
        finally:
            self._reading.roused = None

    def _understood(self, peer: Any, message: Message, values: Sequence[Any]) -> list[Instruction]:
        """What to do about a message of another task, which may be one that no task would send."""
        try:
            return self._worker.handle(peer, message, values)
        except errors.InternalError as error:
            raise wire.Malformed(error.message) from error

    def _runs_inline(self, part: HostedPart) -> bool:
        """True when a part may run on a thread that reads, and must not wait to send.

        While readers are slow it may not: what it sends would pile up here. A thread of the pool
        is held up by them. Nor may a part that waits on its thread: what it waits for may be in
        the next message. Nor one that would have to dial who gets its values.
        """
        return (
            part.seconds < INLINE_SECONDS
            and not part.holds_thread
            and not self._backlog.is_large
            and all(task == self.task or self._knows(task) for task in part.receivers)
        )

    def deliver(self, peer: Any, message: Bundle, values: Sequence[Any]) -> None:
        """Values for a step of this task's own master, which runs on its caller's thread."""
        with self._lock:
            self._worker.bundle(peer, message, values)

    def join_cluster(self, leader: str, fabric: Fabric | None = None) -> None:
        """Lets this task's devices take part in groups, which the task ``leader`` forms."""

        def post(task: str, key: str, value: Any) -> None:
            bundle = Bundle(0, 0, 0, ((key, 1),))  # of no session: groups outlive them
            # Who cannot be reached knows by itself that a group is over.
            dials = not key.startswith(("over ", "leave "))
            self._ship_to(task, "", bundle, [value], False, dials=dials)

        self.state.resources.collectives.connect(self.task, leader, post, fabric)

    def _collect(self, peer: Any, message: Bundle, values: Sequence[Any]) -> None:
        """Values of other members for collectives."""
        collectives = self.state.resources.collectives
        for index, (key, count) in enumerate(message.keys):
            try:
                if count != 1:
                    raise ValueError("a group's messages have one value each")
                collectives.deliver(peer.task, key, values[index])
            except ValueError as error:
                raise wire.Malformed(f"{key!r} is no message of a group") from error

    def lost(self, peer: Any, why: str, cut_off: str = "") -> None:
        """A channel has ended; ``cut_off`` says how, if no other leads to that life of the task."""
        self.state.resources.collectives.lost(peer.task, why)
        with self._lock:
            self._lost.add(peer)
            instructions = self._worker.lost(peer, why)
            if cut_off:
                self._worker.cut_off(peer.task, cut_off)
        self._perform(instructions, wait=False)

    def take_up(self, run: PartRun) -> None:
        """Has a thread go on with ``run``: this one, later, or another."""
        roused = getattr(self._reading, "roused", None)
        if roused is not None:
            roused.append(run)
        else:
            self.threads.run(run.drive)

    def ended(
        self, run: PartRun, values: Sequence[Any] = (), error: BaseException | None = None
    ) -> None:
        """A part has ended."""
        step, context = run.step, run.context
        failure = None
        last: tuple[Bundle, Sequence[Any]] | None = None
        if error is None:
            try:
                # What the master's own part waits for travels with the end of this one.
                rendezvous: Any = step.rendezvous
                last = rendezvous.last_for(getattr(step.master, "task", ""))
                rendezvous.flush()
            except Exception as unsent:  # noqa: BLE001 (told to the master)
                error = unsent
        if error is not None:
            cause = step.rendezvous.error
            follows = context.cancelled is not None or (cause is not None and error is not cause)
            failure = wire.failure_of(error, self.task, follows)
            _let_go(error)
        stats = b""
        if context.observer is not None:
            if values:
                route = route_key(self.task, getattr(step.master, "task", ""), "fetches")
                context.observer.departed(route, time.perf_counter_ns(), values)
            context.observer.came(step.rendezvous.arrivals)  # type: ignore[attr-defined]
            stats = _written(context.observer)
        context.steps.end(context)
        with self._lock:
            self.ended_parts += 1
            said = self._worker.ended(step, failure, values, stats, last)
        try:
            if said is not None:
                self._send(said, getattr(self._reading, "roused", None) is None)
        finally:
            step.rendezvous.context = None  # type: ignore[attr-defined]  # which leads back to it
            self.runs.pop(step, None)  # its master has been told: the task may end now
            self.parked()

    # Instructions ---------------------------------------------------------------------------

    def _perform(self, instructions: Sequence[Instruction], wait: bool) -> None:
        for instruction in instructions:
            if isinstance(instruction, Start):
                self._start(instruction)
            elif isinstance(instruction, Say):
                self._send(instruction, wait)
            elif isinstance(instruction, Stop):
                run = self.runs.get(instruction.step)
                if run is not None:
                    run.context.cancel(instruction.why)
            elif isinstance(instruction, Open):
                self._open(instruction)
            elif isinstance(instruction, Drop):
                session = self.sessions.pop(instruction.session, None)
                if session is not None:
                    session.steps.close(instruction.why)
                    if session.isolated:  # but for the groups that it is in with other sessions
                        session.state.resources.collectives = Collectives()
                        session.state.clear()
            elif isinstance(instruction, Prepare):
                register = instruction.register
                session = self.sessions.get(register.session)
                if session is None:  # it was closed in this moment
                    continue
                session.peers.update(register.peers)
                session.parts[register.part] = HostedPart(register, session, self.devices)
                if session.steps.subgraphs is None:
                    make = function_planner(register, session, self.devices)
                    session.steps.subgraphs = Subgraphs(make, session.steps)
                    session.steps.destination = self.devices.destination
            elif isinstance(instruction, Discard):
                session = self.sessions.get(instruction.session)
                if session is None:
                    continue
                for part in instruction.parts:
                    session.parts.pop(part, None)

    def _send(self, instruction: Say, wait: bool) -> None:
        try:
            peer: Any = instruction.peer
            peer.send(instruction.message, instruction.values, wait)
        except errors.OpError as error:
            logger.debug("A master could not be told that its step has ended: %s", error)
        except Exception as error:  # noqa: BLE001 (a value that has no bytes: the master is told)
            session, part, step, *_ = instruction.message
            failure = wire.failure_of(error, self.task)
            self._send(Say(instruction.peer, PartEnded(session, part, step, failure=failure)), wait)

    def _open(self, instruction: Open) -> None:
        state = TaskState() if instruction.isolated else self.state
        state.resources.collectives = self.state.resources.collectives
        steps = RunningSteps(state.resources)
        self.sessions[instruction.session] = HostedSession(
            instruction.session, state, steps, instruction.isolated
        )
        if self._closed is not None:  # after the session can be seen: closing misses none
            steps.close(self._closed)

    def _start(self, instruction: Start) -> None:
        step = instruction.step
        session = self.sessions.get(step.session)
        part = None if session is None else session.parts.get(step.part or 0)
        if session is None or part is None:
            return
        context = session.steps.begin(None, None)
        context.rendezvous = step.rendezvous
        step.rendezvous.context = context  # type: ignore[attr-defined]
        if instruction.trace:
            tracer = StepTracer(lambda op: part.plan().device_of(op))
            context.observer = step.rendezvous.observer = tracer  # type: ignore[attr-defined]
            if instruction.feeds:
                route = route_key(getattr(step.master, "task", ""), self.task, "feeds")
                tracer.came({route: time.perf_counter_ns()})
        run = PartRun(self, step, part, context, instruction.feeds)
        self.runs[step] = run
        context.on_arrival = run.roused
        roused = getattr(self._reading, "roused", None)
        if roused is not None and self._runs_inline(part):
            run.drive()
        else:
            self.threads.run(run.drive)

    def _rendezvous(self, session: int, step: int) -> StepRendezvous:
        return StepRendezvous(self.task, session, step, self._shipping(session))

    def _shipping(self, session: int) -> Ship:
        def ship(task: str, bundle: Bundle, values: list[Any], given_up: GivenUp) -> None:
            hosted = self.sessions.get(session)
            address = "" if hosted is None else hosted.peers.get(task, "")
            wait = getattr(self._reading, "roused", None) is None
            self._ship_to(task, address, bundle, values, wait, dials=wait, given_up=given_up)

        return ship

    # The part of a master on its own task ---------------------------------------------------

    def open_here(self, message: Message) -> None:
        """A message of this task's own master."""
        with self._lock:
            instructions = self._worker.handle(None, message, ())
        self._perform(instructions, wait=True)

    def begin_here(self, message: RunPart) -> WorkerStep | None:
        """A step that the caller runs itself; :meth:`end_here` must follow."""
        with self._lock:
            instructions = self._worker.run(None, message, ())
        for instruction in instructions:
            if isinstance(instruction, Start):
                return instruction.step
        return None

    def run_here(self, step: WorkerStep, feeds: list[Any], context: StepContext) -> list[Any]:
        """The values of a step that was begun here, on the caller's thread."""
        session = self.sessions.get(step.session)
        part = None if session is None else session.parts.get(step.part or 0)
        if session is None or part is None:
            raise errors.CancelledError(None, None, "The step was cancelled: its session is closed")
        rendezvous: Any = step.rendezvous
        context.rendezvous = rendezvous
        rendezvous.observer, rendezvous.context = context.observer, context
        context.steps.subgraphs = session.steps.subgraphs
        context.steps.destination = session.steps.destination
        session.steps.adopt(context)
        try:
            values = part.plan().run(feeds, context)
        finally:
            session.steps.end(context)
        step.rendezvous.flush()
        return values

    def end_here(self, step: WorkerStep) -> None:
        """The caller has run its part."""
        with self._lock:
            self.ended_parts += 1
            self._worker.ended(step)

    def steps_waiting(self, count: int, seconds: float) -> bool:
        """Waits until ``count`` steps can only wait here; False when they do not."""

        def wait() -> bool:
            return sum(not run.driven for run in list(self.runs.values())) >= count

        return self._await_parked(wait, seconds)

    def let_end(self) -> None:
        """Lets parts that are running end, and their masters be told, before the task goes.

        What ends a task is often a step of another one: it should not fail for having done so.
        """
        self._await_parked(lambda: not any(run.driven for run in list(self.runs.values())), _GRACE)

    def _await_parked(self, happened: Callable[[], bool], seconds: float) -> bool:
        with self._parked:
            self._watched += 1
            try:
                return self._parked.wait_for(happened, seconds)
            finally:
                self._watched -= 1

    def parked(self) -> None:
        """Notes that a step can only wait, or has ended."""
        # Who watches says so first and then looks; this is the other way around.
        if self._watched:
            with self._parked:
                self._parked.notify_all()

    def close(self, why: str) -> None:
        """Stops everything."""
        self._closed = why
        for session in list(self.sessions.values()):
            session.steps.close(why)
        self.state.clear()
        self.threads.close()


def _let_go(error: BaseException) -> None:
    """Has an error forget its frames: they have the step's values, and the step has the error."""
    found: BaseException | None = error
    while found is not None and found.__traceback__ is not None:  # causes may lead to each other
        found.__traceback__ = None
        found = found.__cause__ or found.__context__


def _written(tracer: StepTracer) -> bytes:
    from tensorboard.compat.proto.config_pb2 import RunMetadata

    metadata = RunMetadata()
    tracer.fill_part(metadata)
    return metadata.step_stats.SerializeToString()


_hosts: weakref.WeakSet[WorkerHost] = weakref.WeakSet()


def _cancel_steps() -> None:
    """Cancels what the workers of the process run, now that it ends."""
    for host in list(_hosts):
        for session in list(host.sessions.values()):
            session.steps.cancel("the process is ending")


def _let_steps_end() -> None:
    for host in list(_hosts):
        host.let_end()


at_exit.let_end_at_exit(_let_steps_end)
at_exit.cancel_at_exit(_cancel_steps, inside=(PartRun.drive,))
at_exit.install()
