"""Tasks that meet: over the network, and on one machine over a local socket."""

from __future__ import annotations

import socket
import sys
from queue import Queue
from typing import Any

import pytest

from runnel.distributed.peers import Peers, TaskIdentity
from runnel.distributed.protocol.worker_pb2 import Envelope
from runnel.distributed.security import Security
from runnel.distributed.transport.frame import HEADER, MAGIC
from runnel.distributed.transport.listener import Listener
from runnel.distributed.transport.stream import GREETING_SECONDS

pytestmark = pytest.mark.timeout(60)


class CountingSecurity(Security):
    """Counts how often this side has proved who it is, to one that it has dialled."""

    def proof(self, nonce: bytes, role: str) -> bytes:
        if role == "client":
            proved.append(nonce)
        return super().proof(nonce, role)


proved: list[bytes] = []


class Task:
    """A task that other tasks can dial, without anything behind it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.messages: Queue[Envelope] = Queue()
        self.lost: Queue[Any] = Queue()
        security = CountingSecurity()
        me = TaskIdentity(name)
        self.peers = Peers(
            me,
            security,
            lambda channel, envelope, values: self.messages.put(envelope),
            lambda channel, error: self.lost.put(error),
            10.0,
            1 << 20,
        )
        self._listener = Listener(
            "127.0.0.1", 0, me.local_name, security, self.peers.greet, lambda: ""
        )
        self._listener.start()
        self.address = f"127.0.0.1:{self._listener.port}"

    def close(self) -> None:
        self._listener.close()
        self.peers.close("the test is over")


@pytest.fixture
def tasks() -> Any:
    found = [Task("/job:a/replica:0/task:0"), Task("/job:b/replica:0/task:0")]
    yield found
    for task in found:
        task.close()


@pytest.mark.skipif(sys.platform != "linux", reason="local sockets without a file")
def test_who_is_dialled_never_has_a_connection_that_is_about_to_be_closed(tasks):
    """It could take that one up, for a session of its own, and find it lost."""
    a, b = tasks
    proved.clear()
    channel = a.peers.channel(b.name, b.address)
    assert len(proved) == 1, "over the local socket alone: no other was taken up"
    message = Envelope()
    message.ping.sent_ns = 1
    channel.send(message)
    assert b.messages.get(timeout=30).ping.sent_ns == 1
    assert b.lost.empty()
    [back] = b.peers.channels()
    back.send(message)
    assert a.messages.get(timeout=30).ping.sent_ns == 1


@pytest.mark.skipif(sys.platform != "linux", reason="local sockets without a file")
@pytest.mark.parametrize(("transport", "is_local"), [("", True), ("tcp", False)])
def test_tasks_of_one_machine_may_be_told_to_talk_over_the_network(
    monkeypatch, transport, is_local
):
    monkeypatch.setenv("RUNNEL_TRANSPORT", transport)
    found = [Task("/job:a/replica:0/task:0"), Task("/job:b/replica:0/task:0")]
    try:
        channel = found[0].peers.channel(found[1].name, found[1].address)
        assert channel._stream.is_local is is_local
    finally:
        for task in found:
            task.close()


@pytest.mark.parametrize(
    ("values", "freed", "head", "body"),
    [(0, 0, 1 << 21, 0), (0, 0, 10, 1 << 10), (1, 0, 10, 0), (0, 1, 10, 0)],
)
def test_a_greeting_is_short_and_has_no_values(tasks, values, freed, head, body):
    """Nobody makes a task take memory who has not proved that it belongs to the cluster."""
    host, _, port = tasks[0].address.partition(":")
    with socket.create_connection((host, int(port)), GREETING_SECONDS / 2) as sock:
        sock.sendall(HEADER.pack(MAGIC, 0, values, freed, head, body))
        assert sock.recv(1) == b""  # at once: it does not wait for the rest
