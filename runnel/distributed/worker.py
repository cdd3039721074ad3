"""A worker without threads and sockets: events in, instructions out.

It knows the sessions that masters have opened here, the parts that they have registered, and the
steps that run. It finds the rendezvous of a value that has arrived, and knows when a step is over.
Values may arrive before their step has been started here, and after it has ended; a message may
come twice. A step ends once, and its master hears of it once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runnel.distributed import wire
from runnel.distributed.messages import Bundle, Keys, Message, PartEnded, RunPart
from runnel.distributed.protocol.worker_pb2 import (
    Abort,
    CloseSession,
    CreateSession,
    Forget,
    Register,
)
from runnel.graph.errors import AbortedError, CancelledError, UnavailableError
from runnel.queues.rendezvous import Rendezvous

Peer = Hashable
"""A channel, to the state machine: it only tells one from another."""


class Open(NamedTuple):
    """A session has begun."""

    session: int
    isolated: bool


class Drop(NamedTuple):
    """A session is over; its steps have to stop."""

    session: int
    why: str


class Prepare(NamedTuple):
    """A part may be run from now on."""

    register: Register


class Discard(NamedTuple):
    """Parts will not be run again."""

    session: int
    parts: list[int]


class Start(NamedTuple):
    """A step begins."""

    step: WorkerStep
    feeds: Sequence[Any]
    trace: bool


class Stop(NamedTuple):
    """A step has failed elsewhere."""

    step: WorkerStep
    why: str


class Say(NamedTuple):
    """A master is to be told that its step has ended."""

    peer: Peer
    message: PartEnded
    values: Sequence[Any] = ()


Instruction = Open | Drop | Prepare | Discard | Start | Stop | Say


class WorkerStep:
    """A step here: begun by a value that arrived, or by its master."""

    __slots__ = ("session", "number", "part", "master", "rendezvous", "bundles")

    def __init__(self, session: int, number: int, rendezvous: Rendezvous) -> None:
        self.session = session
        self.number = number
        self.part: int | None = None
        """The part that runs; None before the master has started it."""
        self.master: Peer = None
        self.rendezvous = rendezvous
        self.bundles: set[tuple[Peer, int]] = set()
        """The bundles that have arrived."""


@dataclass(slots=True)
class WorkerSession:
    """A master's session here."""

    number: int
    master: Peer
    parts: set[int] = field(default_factory=set)
    steps: dict[int, WorkerStep] = field(default_factory=dict)
    oldest: int = 0
    """All steps with lower numbers are over."""
    over: set[int] = field(default_factory=set)
    """Others that are over."""

    def is_over(self, step: int) -> bool:
        return step < self.oldest or step in self.over


class Worker:
    """The state machine; ``make_rendezvous(session, step)`` gives where a step's values meet."""

    def __init__(
        self, task: str, make_rendezvous: Any = lambda session, step: Rendezvous()
    ) -> None:
        self.task = task
        self.sessions: dict[int, WorkerSession] = {}
        self._make_rendezvous = make_rendezvous

    def handle(self, peer: Peer, message: Message, values: Sequence[Any]) -> list[Instruction]:
        """What to do about a message."""
        if isinstance(message, RunPart):
            return self.run(peer, message, values)
        if isinstance(message, Bundle):
            self.bundle(peer, message, values)
            return []
        if isinstance(message, PartEnded):
            return []
        kind = message.WhichOneof("content")
        if kind == "register":
            return self._register(message.register)
        if kind == "create_session":
            return self._create(peer, message.create_session)
        if kind == "abort":
            return self._abort(message.abort)
        if kind == "forget":
            return self._forget(message.forget)
        if kind == "close_session":
            return self._close(message.close_session)
        return []

    # Sessions -------------------------------------------------------------------------------

    def _create(self, peer: Peer, message: CreateSession) -> list[Instruction]:
        if message.session in self.sessions:
            return []
        self.sessions[message.session] = WorkerSession(message.session, peer)
        return [Open(message.session, message.isolated)]

    def _register(self, message: Register) -> list[Instruction]:
        session = self.sessions.get(message.session)
        if session is None or message.part in session.parts:
            return []
        session.parts.add(message.part)
        return [Prepare(message)]

    def _forget(self, message: Forget) -> list[Instruction]:
        session = self.sessions.get(message.session)
        if session is None:
            return []
        session.parts.difference_update(message.parts)
        return [Discard(message.session, list(message.parts))]

    def _close(self, message: CloseSession) -> list[Instruction]:
        return self._drop(message.session, "the session was closed")

    def _drop(self, number: int, why: str) -> list[Instruction]:
        session = self.sessions.pop(number, None)
        if session is None:
            return []
        gone = CancelledError(None, None, f"The step was cancelled: {why}")
        for step in session.steps.values():
            step.rendezvous.abort(gone)
        return [Drop(number, why)]

    def lost(self, peer: Peer, why: str) -> list[Instruction]:
        """A channel has ended: the sessions of its master are over."""
        found: list[Instruction] = []
        for session in [s for s in self.sessions.values() if s.master == peer]:
            found += self._drop(session.number, why)
        return found

    def cut_off(self, task: str, why: str) -> None:
        """Nothing leads to ``task`` any more: steps of other masters may wait for its values."""
        for session in self.sessions.values():
            for step in session.steps.values():
                step.rendezvous.lose(task, UnavailableError(None, None, why))

    # Steps ----------------------------------------------------------------------------------

    def run(self, peer: Peer, message: RunPart, feeds: Sequence[Any]) -> list[Instruction]:
        """A master starts a step; ``peer`` is None for the master of this task itself."""
        session = self.sessions.get(message.session)
        if session is None or message.part not in session.parts:
            unknown = AbortedError(
                None,
                None,
                f"{self.task} does not know the session of this step: it was started anew, or has "
                "given the session up. Make a new session, and restore its variables",
            )
            failure = wire.failure_of(unknown, self.task)
            ended = PartEnded(message.session, message.part, message.step, failure=failure)
            return [Say(peer, ended)]
        self._advance(session, message.oldest)
        step = self._step(session, message.step)
        if step is None or step.part is not None:  # it is over, or has been started
            return []
        step.part, step.master = message.part, peer
        return [Start(step, feeds, message.trace)]

    def bundle(self, peer: Peer, message: Bundle, values: Sequence[Any]) -> None:
        """Values have arrived for a step."""
        session = self.sessions.get(message.session)
        step = None if session is None else self._step(session, message.step)
        if step is None or (peer, message.number) in step.bundles:
            return
        step.bundles.add((peer, message.number))
        if step.rendezvous.error is None:
            for key, value in _by_key(message.keys, values):
                step.rendezvous.put(key, value)

    def _abort(self, message: Abort) -> list[Instruction]:
        session = self.sessions.get(message.session)
        step = None if session is None else self._step(session, message.step)
        if session is None or step is None:
            return []
        error = wire.error_of(message.failure)
        step.rendezvous.abort(error)
        if step.part is None:
            self._end(session, message.step)
            return []
        return [Stop(step, f"another part of the step failed: {error.message}")]

    def ended(
        self,
        step: WorkerStep,
        failure: Any = None,
        values: Sequence[Any] = (),
        stats: bytes = b"",
        last: tuple[Bundle, Sequence[Any]] | None = None,
    ) -> Say | None:
        """A step that was started has ended; what its master is told, unless nobody waits for it.

        ``values`` are what it was to give; ``last`` is what it has sent to its master's task, which
        is told with its end.
        """
        session = self.sessions.get(step.session)
        if session is None or session.steps.get(step.number) is not step:
            return None
        self._end(session, step.number)
        if step.master is None:
            return None
        fetched, bundle = len(values), None
        if last is not None:
            bundle = last[0]
            values = [*values, *last[1]]
        ended = PartEnded(
            step.session, step.part or 0, step.number, fetched, failure, stats, bundle
        )
        return Say(step.master, ended, values)

    def _step(self, session: WorkerSession, number: int) -> WorkerStep | None:
        """A step that runs or will; None when it is over."""
        step = session.steps.get(number)
        if step is None and not session.is_over(number):
            rendezvous = self._make_rendezvous(session.number, number)
            step = session.steps[number] = WorkerStep(session.number, number, rendezvous)
        return step

    def _end(self, session: WorkerSession, number: int) -> None:
        del session.steps[number]
        session.over.add(number)

    def _advance(self, session: WorkerSession, oldest: int) -> None:
        """Forgets what can be of no use: values of steps that the master has given up."""
        if oldest <= session.oldest:
            return
        session.oldest = oldest
        if session.over:
            session.over = {number for number in session.over if number >= oldest}
        if session.steps:
            for number in _early(session.steps.values()):
                if number < oldest:
                    del session.steps[number]


def _by_key(keys: Keys, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The values of a bundle under their keys; those that were sent together, as a tuple."""
    place = 0
    for key, count in keys:
        if count <= 1:
            yield key, values[place]
            place += 1
        else:
            yield key, tuple(values[place : place + count])
            place += count


def _early(steps: Iterable[WorkerStep]) -> list[int]:
    return [step.number for step in steps if step.part is None]
