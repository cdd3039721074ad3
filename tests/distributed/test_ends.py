"""Ends that meet beginnings: what begins while a session, a channel or a task ends, ends too."""

from __future__ import annotations

import threading
from functools import partial
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest

import runnel as tf
from runnel.distributed import peers
from runnel.distributed.peers import Peers
from runnel.distributed.protocol.worker_pb2 import Envelope
from runnel.distributed.server import Server
from runnel.distributed.transport.in_process import InProcessChannel
from runnel.distributed.worker import Discard, Prepare
from runnel.distributed.worker_host import WorkerHost
from runnel.runtime.state.step_context import StepContext
from tests.distributed.clusters import servers
from tests.distributed.test_peers import Task

pytestmark = pytest.mark.timeout(60)

PATIENCE = 30.0


def first_call(monkeypatch: Any, owner: type, name: str, before: Any = None, after: Any = None):
    """Has something happen before or after the next call of a method, on whichever object."""
    method = getattr(owner, name)

    def call(self: Any, *arguments: Any, **more: Any) -> Any:
        if before is not None and not before(self, *arguments, **more):
            return method(self, *arguments, **more)
        monkeypatch.setattr(owner, name, method)
        found = method(self, *arguments, **more)
        if after is not None:
            after()
        return found

    monkeypatch.setattr(owner, name, call)


def test_a_step_whose_session_is_closed_as_it_begins_is_cancelled(monkeypatch):
    one = tf.constant(1.0) + tf.placeholder_with_default(1.0, [])
    with servers(worker=1) as cluster:
        sess = tf.Session(cluster["worker0"].target)
        assert sess.run(one) == 2.0
        first_call(monkeypatch, WorkerHost, "begin_here", after=sess.close)
        with pytest.raises(tf.errors.CancelledError):
            sess.run(one)


@pytest.mark.parametrize("forgets", [False, True])
def test_a_step_that_is_prepared_while_its_task_is_stopped_is_cancelled(monkeypatch, forgets):
    with servers(worker=1) as cluster:
        server = cluster["worker0"]
        sess = tf.Session(server.target)
        one = tf.constant(1.0) + tf.placeholder_with_default(1.0, [])
        if forgets:  # the parts of an earlier step
            sess.run(one)
            sess._prepared.clear()

        def stops(self: WorkerHost, instructions: Any, wait: bool) -> bool:
            kind = Discard if forgets else Prepare
            if not instructions or not isinstance(instructions[0], kind):
                return False
            server.stop()
            return True

        first_call(monkeypatch, WorkerHost, "_perform", before=stops)
        with pytest.raises((tf.errors.CancelledError, tf.errors.UnavailableError)):
            sess.run(one)


def test_no_session_begins_on_a_task_that_was_stopped():
    with servers(worker=1) as cluster:
        server = cluster["worker0"]
        server.stop()
        with pytest.raises(tf.errors.UnavailableError, match="stopped"):
            tf.Session(server.target)
        assert not server.masters and not server.host.sessions
        with pytest.raises(OSError, match="stopped"):  # a client that has just been let in
            server._grpc_path()


def test_a_session_that_is_closed_while_a_task_hears_of_it_is_forgotten_there(monkeypatch):
    with servers(ps=1, worker=1) as cluster:
        worker, ps = cluster["worker0"], cluster["ps0"]

        def closes(self: InProcessChannel, envelope: Envelope, *rest: Any, **more: Any) -> bool:
            if envelope.WhichOneof("content") != "create_session":
                return False
            for master in list(worker.masters.values()):
                master.close()
            return True

        first_call(monkeypatch, InProcessChannel, "send", before=closes)
        with pytest.raises(tf.errors.CancelledError):
            tf.Session(worker.target)
        # What is asked on the same channel is answered when all that was said before is done.
        worker.answer_of(worker.question(worker.peers.known(ps.task), "ready"), PATIENCE)
        assert not ps.host.sessions and not worker.host.sessions


def test_nothing_begins_for_a_channel_that_has_ended():
    with servers(ps=1) as cluster:
        host = cluster["ps0"].host
        begin = Envelope()
        begin.create_session.session = 7
        ended, other = (InProcessChannel(host.receive, host.lost) for _ in range(2))
        host.lost(ended, "it is gone")
        host.receive(ended, begin, [])  # it had come before, and was read after
        assert not host.sessions
        other.error = ConnectionResetError("it reads no more")  # what it has said comes first
        host.receive(other, begin, [])
        assert list(host.sessions) == [7]


# Channels ---------------------------------------------------------------------------------------


@pytest.fixture
def tasks() -> Any:
    found = [Task("/job:a/replica:0/task:0"), Task("/job:b/replica:0/task:0")]
    yield found
    for task in found:
        task.close()


def test_who_dials_a_task_that_is_being_stopped_is_refused_and_nothing_else_happens(
    tasks, monkeypatch
):
    a, b = tasks
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    b.peers.close("it was stopped")
    with pytest.raises(tf.errors.UnavailableError):
        channel = a.peers.channel(b.name, b.address)
        a.lost.get(timeout=PATIENCE)
        channel.send(Envelope())
    for thread in threading.enumerate():
        if thread.name == "runnel-greeting":
            thread.join(PATIENCE)
    assert not raised


def test_nobody_waits_for_the_patience_of_another(tasks, monkeypatch):
    a, b = tasks
    patience = threading.Event()
    begun = threading.Event()

    def refused(self: Peers, task: str, address: str) -> Any:
        begun.set()
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(Peers, "_dial", refused)

    def wait_long() -> None:
        with pytest.raises(tf.errors.CancelledError):
            a.peers.channel(b.name, b.address, 600, lambda: "over" if patience.is_set() else None)

    patient = threading.Thread(target=wait_long)
    patient.start()
    try:
        assert begun.wait(PATIENCE)
        with pytest.raises(tf.errors.UnavailableError, match="nobody is there"):
            a.peers.channel(b.name, b.address)
        assert patient.is_alive()
    finally:
        patience.set()
        patient.join(PATIENCE)


def test_who_has_given_up_does_not_wait_for_one_who_dials(tasks, monkeypatch):
    a, b = tasks
    begun, may_end = threading.Event(), threading.Event()

    def slow(self: Peers, task: str, address: str) -> Any:
        begun.set()
        may_end.wait()
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(Peers, "_dial", slow)

    def dial() -> None:
        with pytest.raises(tf.errors.UnavailableError):
            a.peers.channel(b.name, b.address)

    dialling = threading.Thread(target=dial)
    dialling.start()
    try:
        assert begun.wait(PATIENCE)
        with pytest.raises(tf.errors.CancelledError, match="the session was closed"):
            a.peers.channel(b.name, b.address, 600, lambda: "the session was closed")
        assert not may_end.is_set()
    finally:
        may_end.set()
        dialling.join(PATIENCE)


def test_who_is_busy_with_a_message_does_not_take_the_other_side_for_dead(tasks, monkeypatch):
    """A part of a step that has to be compiled, say, on the thread that reads."""
    a, b = tasks
    begun, may_end = threading.Event(), threading.Event()

    def receive(channel: Any, envelope: Envelope, values: list[Any]) -> None:
        begun.set()
        may_end.wait(PATIENCE)

    told = threading.Event()
    a.peers._receive = lambda *_: told.set()
    b.peers._receive = receive
    channel = a.peers.channel(b.name, b.address)
    channel.send(Envelope())
    assert begun.wait(PATIENCE)
    now = [peers.time.monotonic()]
    clock = SimpleNamespace(monotonic=lambda: now[0], time_ns=lambda: 1)
    monkeypatch.setattr(peers, "time", clock)
    try:
        for _ in range(24):
            now[0] += b.peers.deadline / 8
            told.clear()
            b.peers.tick()
            assert told.wait(PATIENCE)  # the other side hears that this one is alive
            a.peers.tick()
        assert b.lost.empty()
        assert a.lost.empty()
    finally:
        may_end.set()
    monkeypatch.undo()
    channel.send(Envelope())
    assert channel.error is None


def test_a_question_that_cannot_be_asked_is_forgotten():
    server = Server.create_local_server()
    try:

        def refuse(envelope: Envelope) -> None:
            raise tf.errors.UnavailableError(None, None, "it is lost")

        with pytest.raises(tf.errors.UnavailableError):
            server.question(SimpleNamespace(send=refuse, task="lost"), "ready")
        assert not server._questions
    finally:
        server.stop()


def handed_on() -> tuple[Any, Any]:
    """What is fed to ``ps0``, and what ``ps1`` makes of what that one sends to it."""
    with tf.device("/job:ps/task:0"):
        given = tf.placeholder(tf.float32, [])
        sent = given + 1.0
    with tf.device("/job:ps/task:1"):
        return given, sent * 2.0


def cut(one: Any, other: Any, monkeypatch: Any) -> None:
    """Ends the channels between two servers; both have dealt with it."""
    channels = [c for c in one.peers.channels() if c.task == other.task]
    ended: Queue[Any] = Queue()
    lost = Server._lost

    def noted(self: Any, channel: Any, error: Exception) -> None:
        lost(self, channel, error)
        ended.put(channel)

    for server in (one, other):
        monkeypatch.setattr(server.peers, "_told_lost", partial(noted, server))
    for channel in channels:
        channel.close("for the test")
    for _ in range(2 * len(channels)):
        ended.get(timeout=PATIENCE)


def test_nobody_is_dialled_by_who_reads(monkeypatch):
    """A part that runs on the thread that reads has found that who gets its values is not there."""
    dialled: Queue[str] = Queue()
    dial = Peers._dial

    def noted(self: Peers, task: str, address: str) -> Any:
        dialled.put(threading.current_thread().name)
        return dial(self, task, address)

    with servers(ps=2, worker=1) as found:
        given, received = handed_on()
        with tf.Session(found["worker0"].target) as sess:
            for _ in range(10):
                assert sess.run(received, {given: 1.0}) == 4.0
            monkeypatch.setattr(Peers, "_dial", noted)
            for _ in range(5):
                cut(found["ps0"], found["ps1"], monkeypatch)
                assert sess.run(received, {given: 1.0}) == 4.0
    names = [dialled.get(timeout=PATIENCE) for _ in range(dialled.qsize())]
    assert names and not any(name.startswith("runnel-reader") for name in names)


@pytest.mark.parametrize("task", ["ps0", "ps1"])
def test_a_step_that_fails_as_it_begins_waits_for_no_part_that_was_not_begun(task, monkeypatch):
    linger = StepContext.linger
    over: Queue[bool] = Queue()

    def noted(self: StepContext, happened: Any, seconds: float) -> None:
        linger(self, happened, seconds)
        over.put(happened())

    monkeypatch.setattr(StepContext, "linger", noted)
    with servers(ps=2, worker=1) as found:
        given, received = handed_on()
        with tf.Session(found["worker0"].target) as sess:
            assert sess.run(received, {given: 1.0}) == 4.0
            cut(found["worker0"], found[task], monkeypatch)
            with pytest.raises(tf.errors.OpError):
                sess.run(received, {given: 1.0})
    assert over.get(timeout=PATIENCE)


def test_a_step_that_waits_until_a_task_is_reached_can_be_stopped(monkeypatch):
    monkeypatch.setenv("RUNNEL_HEARTBEAT_SECONDS", str(4 * PATIENCE))

    def refused(self: Peers, task: str, address: str) -> Any:
        raise ConnectionRefusedError("nobody is there")

    with servers(ps=2, worker=1) as found:
        given, received = handed_on()
        host = found["ps0"].host
        with tf.Session(found["worker0"].target) as sess:
            assert sess.run(received, {given: 1.0}) == 4.0
            monkeypatch.setattr(Peers, "_dial", refused)
            cut(found["ps0"], found["ps1"], monkeypatch)
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(received, {given: 1.0}, tf.RunOptions(timeout_in_ms=200))
            assert host._await_parked(lambda: not host.runs, PATIENCE)
