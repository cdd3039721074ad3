"""The worker's state machine: messages late, early, twice, lost with their channel; tasks anew."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runnel.distributed import wire
from runnel.distributed.messages import Bundle, Message, RunPart
from runnel.distributed.protocol.worker_pb2 import Envelope
from runnel.distributed.worker import Drop, Open, Prepare, Say, Start, Stop, Worker
from runnel.graph.errors import AbortedError, InternalError
from runnel.queues.waiter import WAITING
from tests.queues.told import Told

SESSIONS = (11, 12)
MASTERS = {11: "master of 11", 12: "master of 12"}
PEERS = ("a", "b")
STEPS = st.integers(1, 6)


class WorkerMachine(RuleBasedStateMachine):
    """The reference knows which steps have begun and ended; the network does what it likes."""

    @initialize()
    def begin(self) -> None:
        self.worker = Worker("/job:ps/replica:0/task:0")
        self.open: set[int] = set()
        self.dropped: set[int] = set()
        self.running: dict[tuple[int, int], Any] = {}
        self.over: set[tuple[int, int]] = set()
        self.oldest = dict.fromkeys(SESSIONS, 0)
        self.told: dict[tuple[int, int], int] = {}
        self.network: list[tuple[str, Message, list[Any]]] = []

    # What others send: it is put on the network, and may be delivered late, twice or never.

    def put(self, peer: str, message: Message, values: list[Any] | None = None) -> None:
        self.network.append((peer, message, values or []))

    @rule(session=st.sampled_from(SESSIONS))
    def create(self, session: int) -> None:
        envelope = Envelope()
        envelope.create_session.session = session
        self.handle(MASTERS[session], envelope, [])  # acknowledged before anything else
        if session not in self.dropped:
            register = Envelope()
            register.register.session, register.register.part = session, 1
            self.handle(MASTERS[session], register, [])

    @rule(session=st.sampled_from(SESSIONS), step=STEPS, oldest=STEPS)
    def run(self, session: int, step: int, oldest: int) -> None:
        self.put(MASTERS[session], RunPart(session, 1, step, min(oldest, step)))

    @rule(
        session=st.sampled_from(SESSIONS),
        step=STEPS,
        peer=st.sampled_from(PEERS),
        number=st.integers(0, 2),
    )
    def bundle(self, session: int, step: int, peer: str, number: int) -> None:
        bundle = Bundle(session, step, number, ((f"{peer} {number}", 1),))
        self.put(peer, bundle, [f"value {number} of {peer}"])

    @rule(session=st.sampled_from(SESSIONS), step=STEPS)
    def abort(self, session: int, step: int) -> None:
        envelope = Envelope()
        envelope.abort.session, envelope.abort.step = session, step
        error = InternalError(None, None, "elsewhere")
        envelope.abort.failure.CopyFrom(wire.failure_of(error, "/job:other"))
        self.put(MASTERS[session], envelope)

    # The network.

    @precondition(lambda self: self.network)
    @rule(data=st.data(), again=st.booleans())
    def deliver(self, data: Any, again: bool) -> None:
        place = data.draw(st.integers(0, len(self.network) - 1))
        message = self.network[place]
        if not again:
            del self.network[place]
        self.handle(*message)

    @precondition(lambda self: self.network)
    @rule(data=st.data())
    def lose(self, data: Any) -> None:
        """A message is lost with its channel."""
        place = data.draw(st.integers(0, len(self.network) - 1))
        peer = self.network.pop(place)[0]
        self.network = [message for message in self.network if message[0] != peer]
        self.perform(self.worker.lost(peer, "lost"))
        for session, master in MASTERS.items():
            if master == peer:
                self.forget(session)

    @rule(session=st.sampled_from(SESSIONS))
    def close(self, session: int) -> None:
        envelope = Envelope()
        envelope.close_session.session = session
        self.handle(MASTERS[session], envelope, [])
        self.forget(session)

    def forget(self, session: int) -> None:
        if session in self.open:
            self.open.discard(session)
            self.oldest[session] = 0
            for key in [k for k in self.running if k[0] == session]:
                step = self.running.pop(key)
                assert step.rendezvous.error is not None
                assert self.worker.ended(step) is None  # nobody is waiting
            self.over = {key for key in self.over if key[0] != session}
            self.told = {k: n for k, n in self.told.items() if k[0] != session}

    # What runs here.

    @precondition(lambda self: self.running)
    @rule(data=st.data(), fails=st.booleans())
    def end(self, data: Any, fails: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        step = self.running.pop(key)
        failure = wire.failure_of(AbortedError(None, None, "bad"), "here") if fails else None
        values = [] if fails else ["value"]
        said = self.worker.ended(step, failure, values)
        assert isinstance(said, Say) and said.peer == MASTERS[key[0]]
        assert said.message.step == key[1]
        assert (said.message.failure is not None) is fails
        self.over.add(key)
        self.told[key] = self.told.get(key, 0) + 1
        assert self.worker.ended(step, failure, values) is None  # once

    @precondition(lambda self: self.running)
    @rule(data=st.data(), peer=st.sampled_from(PEERS), number=st.integers(0, 2))
    def receive(self, data: Any, peer: str, number: int) -> None:
        """A step takes a value; if it is there it is the one that was sent under its key."""
        step = self.running[data.draw(st.sampled_from(sorted(self.running)))]
        if step.rendezvous.error is not None:
            return
        key = f"{peer} {number}"
        if key in step.rendezvous._waiters:
            return
        waiter = Told()
        found = step.rendezvous.recv(key, waiter)
        if found is WAITING:
            step.rendezvous.cancel(waiter)
        else:
            assert found == (f"value {number} of {peer}",)

    def handle(self, peer: str, message: Message, values: list[Any]) -> None:
        instructions = self.worker.handle(peer, message, values)
        if isinstance(message, RunPart):
            self.expect_run(message, instructions)
        else:
            self.perform(instructions)

    def expect_run(self, run: RunPart, instructions: list[Any]) -> None:
        key = (run.session, run.step)
        if run.session not in self.open:
            [said] = instructions
            assert said.message.failure.code == AbortedError.code
            return
        self.oldest[run.session] = max(self.oldest[run.session], run.oldest)
        is_over = key in self.over or run.step < self.oldest[run.session]
        if key in self.running or is_over:
            assert instructions == []
        elif instructions:
            [start] = instructions
            assert isinstance(start, Start)
            self.running[key] = start.step
        else:
            self.over.add(key)  # it was aborted before it had begun

    def perform(self, instructions: list[Any]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Open):
                self.open.add(instruction.session)
            elif isinstance(instruction, Stop):
                key = (instruction.step.session, instruction.step.number)
                assert self.running[key] is instruction.step
                assert instruction.step.rendezvous.error is not None
            else:
                assert isinstance(instruction, Prepare | Drop), instruction

    @invariant()
    def nothing_is_kept_for_ever(self) -> None:
        for number, session in self.worker.sessions.items():
            assert number in self.open
            for step in session.steps:
                assert (number, step) in self.running or not session.is_over(step)
        for count in self.told.values():
            assert count == 1


WorkerMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, derandomize=True
)
TestWorker = WorkerMachine.TestCase
