"""What is around a worker: its state, its plans, and the threads that run its steps.

A part that has been seen to take little time runs on the thread that got the message. A part that
can only wait holds no thread: it is taken up again by whoever brings what it waits for, or by a
thread of the pool where that one must not be held up.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runnel.distributed import wire
from runnel.distributed.protocol.worker_pb2 import Bundle, Envelope, Register, Run
from runnel.distributed.step_rendezvous import Ship, StepRendezvous
from runnel.distributed.threads import Threads
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
from runnel.graph.dtypes import as_dtype
from runnel.graph.graph import Graph
from runnel.graph.import_graph_def import import_graph_def
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.schedule.tracing import StepTracer
from runnel.runtime.state.at_exit import cancel_at_exit, require_running
from runnel.runtime.state.step_context import RunningSteps, StepContext
from runnel.runtime.state.task_state import TaskState

logger = logging.getLogger("runnel")

INLINE_SECONDS = 0.005
"""A part that takes less runs on the thread that reads from the network."""


class HostedPart:
    """A part that was registered: its plan is made when it first runs."""

    def __init__(self, register: Register, session: HostedSession, host: WorkerHost) -> None:
        self._register: Register | None = register
        self._session = session
        self._host = host
        # One thread prepares the plan; the others wait for it.
        self._lock = threading.Lock()
        self._plan: StepPlan | None = None
        self.seconds = 1.0
        """How long a run takes, about, without its waiting; it is not known at first."""

    def plan(self) -> StepPlan:
        """What runs it."""
        if self._plan is None:
            with self._lock:
                if self._plan is None:
                    assert self._register is not None
                    self._plan = self._prepared(self._register)
                    self._register = None
        return self._plan

    def _prepared(self, message: Register) -> StepPlan:
        from tensorboard.compat.proto.graph_pb2 import GraphDef

        graph = Graph()
        try:
            with graph.as_default():
                import_graph_def(GraphDef.FromString(message.graph_def), name="")
            fetches = [graph.get_tensor_by_name(name) for name in message.fetches]
            feeds = [graph.get_tensor_by_name(name) for name in message.feeds]
        except errors.OpError:
            raise
        except Exception as error:
            raise errors.InvalidArgumentError(
                None, None, f"A part of a step cannot be read: {error}"
            ) from error
        return StepPlan(
            fetches,
            [op for op in graph.get_operations() if op.type != "Placeholder"],
            feeds,
            self._session.state,
            self._host.devices,
            message.jit,
            message.optimizer,
            raises=message.raises,
            precision=as_dtype(message.precision) if message.precision else None,
        )


@dataclass(slots=True)
class HostedSession:
    """What a session has here."""

    number: int
    state: TaskState
    steps: RunningSteps
    isolated: bool
    parts: dict[int, HostedPart] = field(default_factory=dict)
    peers: dict[str, str] = field(default_factory=dict)
    """The addresses of the tasks that have parts of its steps, as its master knows them."""


class PartRun:
    """One run of a part, driven by whichever thread has something for it."""

    def __init__(
        self,
        host: WorkerHost,
        step: WorkerStep,
        part: HostedPart,
        context: StepContext,
        feeds: Sequence[Any],
    ) -> None:
        self.step = step
        self.context = context
        self.begun = time.time()
        self._host = host
        self._part = part
        self._feeds = feeds
        self._steps: Any = None
        # Guards the two flags: one thread drives at a time, and none of the calls is missed.
        self._lock = threading.Lock()
        self.driven = True
        """False while it can only wait."""
        self._roused = False
        self._spent = 0.0
        self.part = part

    def roused(self) -> None:
        """Something has arrived, or the step has to stop; from any thread, under any lock."""
        with self._lock:
            self._roused = True
            if self.driven:
                return
            self.driven = True
        self._host.take_up(self)

    def drive(self) -> None:
        """Goes on until the step can only wait, or has ended."""
        begun = time.perf_counter()
        while True:
            with self._lock:
                self._roused = False
            if self._advance():
                self._spent += time.perf_counter() - begun
                self._part.seconds += (self._spent - self._part.seconds) / 4
                if self._spent < self._part.seconds:
                    self._part.seconds = self._spent
                return
            with self._lock:
                if not self._roused:
                    self.driven = False
                    self._spent += time.perf_counter() - begun
                    break
        self._host.parked()

    def _advance(self) -> bool:
        """True when the part has ended."""
        context = self.context
        try:
            require_running()
            if self._steps is None:
                self._steps = self._part.plan().proceed(list(self._feeds), context)
            next(self._steps)
            return False
        except StopIteration as ended:
            self._host.ended(self, values=ended.value)
        except Exception as error:  # noqa: BLE001 (told to the master)
            self._host.ended(self, error=error)
        return True


class WorkerHost:
    """A worker with its state and its threads; ``say`` sends, without being held up if asked."""

    def __init__(
        self,
        task: str,
        devices: SessionDevices,
        say: Callable[[Any, Envelope, Sequence[Any], bool], None],
        ship: Callable[[str, str, Envelope, list[Any], bool], None],
    ) -> None:
        """``ship(task, address, envelope, values, wait)`` sends to a task of a name."""
        self.task = task
        self.devices = devices
        self.state = TaskState()
        self._say = say
        self._ship_to = ship
        self._worker = Worker(task, self._rendezvous)
        # Held while the state machine takes an event; never while a part runs or something is sent.
        self._lock = threading.Lock()
        self.sessions: dict[int, HostedSession] = {}
        self.runs: dict[WorkerStep, PartRun] = {}
        self.threads = Threads("runnel-step")
        self._reading = threading.local()
        self._parked = threading.Condition()  # tells that a step has come to where it only waits
        _hosts.add(self)

    # Events ---------------------------------------------------------------------------------

    def receive(self, peer: Any, envelope: Envelope, values: Sequence[Any]) -> None:
        """A message for the worker, on the thread that reads from ``peer``."""
        roused: list[PartRun] = []
        self._reading.roused = roused
        try:
            with self._lock:
                instructions = self._worker.handle(peer, envelope, values)
            if instructions:
                self._perform(instructions, wait=False)
            while roused:
                run = roused.pop()
                if run.part.seconds < INLINE_SECONDS:
                    run.drive()
                else:
                    self.threads.run(run.drive)
        finally:
            self._reading.roused = None

    def lost(self, peer: Any, why: str) -> None:
        """A channel has ended."""
        with self._lock:
            instructions = self._worker.lost(peer, why)
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
            except errors.OpError as unsent:
                error = unsent
        if error is not None:
            cause = step.rendezvous.error
            follows = context.cancelled is not None or (cause is not None and error is not cause)
            failure = wire.failure_of(error, self.task, follows)
        stats = b""
        if context.observer is not None:
            stats = _written(context.observer)
        self.runs.pop(step, None)
        context.steps.end(context)
        with self._lock:
            instructions = self._worker.ended(step, failure, values, stats, last)
        self._perform(instructions, wait=getattr(self._reading, "roused", None) is None)

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
                    if session.isolated:
                        session.state.clear()
            elif isinstance(instruction, Prepare):
                register = instruction.register
                session = self.sessions[register.session]
                session.peers.update(register.peers)
                session.parts[register.part] = HostedPart(register, session, self)
            elif isinstance(instruction, Discard):
                for part in instruction.parts:
                    self.sessions[instruction.session].parts.pop(part, None)

    def _send(self, instruction: Say, wait: bool) -> None:
        try:
            self._say(instruction.peer, instruction.envelope, instruction.values, wait)
        except errors.OpError as error:
            logger.debug("A master could not be told that its step has ended: %s", error)
        except Exception as error:  # noqa: BLE001 (a value that has no bytes: the master is told)
            ended = instruction.envelope.ended
            del ended.fetches[:]
            ended.ClearField("last")
            ended.failure.CopyFrom(wire.failure_of(error, self.task))
            self._send(Say(instruction.peer, instruction.envelope), wait)

    def _open(self, instruction: Open) -> None:
        state = TaskState() if instruction.isolated else self.state
        steps = RunningSteps(state.resources)
        self.sessions[instruction.session] = HostedSession(
            instruction.session, state, steps, instruction.isolated
        )

    def _start(self, instruction: Start) -> None:
        step = instruction.step
        session = self.sessions.get(step.session)
        part = None if session is None else session.parts.get(step.part or 0)
        if session is None or part is None:
            return
        context = session.steps.begin(None, None)
        context.rendezvous = step.rendezvous
        if instruction.trace:
            context.observer = StepTracer(lambda op: part.plan().device_of(op))
        run = PartRun(self, step, part, context, instruction.feeds)
        self.runs[step] = run
        context.on_arrival = run.roused
        roused = getattr(self._reading, "roused", None)
        if part.seconds < INLINE_SECONDS and roused is not None:
            run.drive()
        else:
            self.threads.run(run.drive)

    def _rendezvous(self, session: int, step: int) -> StepRendezvous:
        return StepRendezvous(self.task, session, step, self._shipping(session))

    def _shipping(self, session: int) -> Ship:
        def ship(task: str, envelope: Envelope, values: list[Any]) -> None:
            hosted = self.sessions.get(session)
            address = "" if hosted is None else hosted.peers.get(task, "")
            wait = getattr(self._reading, "roused", None) is None
            self._ship_to(task, address, envelope, values, wait)

        return ship

    # The part of a master on its own task ---------------------------------------------------

    def open_here(self, envelope: Envelope) -> None:
        """A message of this task's own master."""
        with self._lock:
            instructions = self._worker.handle(None, envelope, ())
        self._perform(instructions, wait=True)

    def begin_here(self, message: Run) -> WorkerStep | None:
        """A step that the caller runs itself; :meth:`end_here` must follow."""
        with self._lock:
            instructions = self._worker.run(None, message, ())
        for instruction in instructions:
            if isinstance(instruction, Start):
                return instruction.step
        return None

    def run_here(self, step: WorkerStep, feeds: list[Any], context: StepContext) -> list[Any]:
        """The values of a step that was begun here, on the caller's thread."""
        session = self.sessions[step.session]
        context.rendezvous = step.rendezvous
        plan = session.parts[step.part or 0].plan()
        values = plan.run(feeds, context)
        step.rendezvous.flush()
        return values

    def end_here(self, step: WorkerStep) -> None:
        """The caller has run its part."""
        with self._lock:
            self._worker.ended(step)

    def steps_waiting(self, count: int, seconds: float) -> bool:
        """Waits until ``count`` steps can only wait here; False when they do not."""
        limit = time.monotonic() + seconds
        with self._parked:
            return self._parked.wait_for(
                lambda: sum(not run.driven for run in list(self.runs.values())) >= count,
                max(limit - time.monotonic(), 0),
            )

    def parked(self) -> None:
        """Notes that a step can only wait."""
        with self._parked:
            self._parked.notify_all()

    def close(self, why: str) -> None:
        """Stops everything."""
        for session in list(self.sessions.values()):
            session.steps.close(why)
        self.state.clear()
        self.threads.close()


def _written(tracer: StepTracer) -> bytes:
    from tensorboard.compat.proto.config_pb2 import RunMetadata

    metadata = RunMetadata()
    tracer.fill(metadata)
    return metadata.step_stats.SerializeToString()


_hosts: weakref.WeakSet[WorkerHost] = weakref.WeakSet()


def _cancel_steps() -> None:
    """Cancels what the workers of the process run, now that it ends."""
    for host in list(_hosts):
        for session in list(host.sessions.values()):
            session.steps.cancel("the process is ending")


cancel_at_exit(_cancel_steps, inside=(PartRun.drive,))
