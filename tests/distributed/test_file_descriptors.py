"""A process without file descriptors says so, and goes on when it has some again."""

from __future__ import annotations

import logging
import os
import resource
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

import numpy as np
import pytest

from runnel.distributed.messages import Bundle
from runnel.distributed.security import Security
from runnel.distributed.transport import listener as listeners
from runnel.distributed.transport.connection import Connection
from runnel.distributed.transport.listener import Listener
from runnel.distributed.transport.stream import PlainStream

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="descriptors of sockets go over sockets"),
]


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Within, this process can open nothing."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_both_sides_are_told_that_the_receiver_has_no_descriptors_left():
    lost: Queue[Any] = Queue()
    sides = [
        Connection(
            PlainStream(sock),
            lambda *_: None,
            lambda connection, error: lost.put((connection, str(error))),
            1 << 30,
        )
        for sock in socket.socketpair()
    ]
    sides[0].task, sides[1].task = "/job:ps", "/job:worker"
    try:
        sides[0].send(Bundle(1, 2, 3, (("key", 1),)), [np.ones(1 << 20)], wait=False)
        sides[0].start()
        with no_descriptors():
            sides[1].start()
            told = dict(lost.get(timeout=60) for _ in sides)
        for side in sides:
            assert "no file descriptors left" in told[side] and "ulimit -n" in told[side]
        assert "/job:ps says" in told[sides[0]]
    finally:
        for side in sides:
            side.close("the test is over")


def test_connections_wait_until_their_task_has_descriptors_again(monkeypatch, caplog):
    monkeypatch.setattr(listeners, "_PAUSE_SECONDS", 0.01)
    taken: Queue[Any] = Queue()
    warned = threading.Event()

    class Noted(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warned.set()

    handler = Noted()
    logging.getLogger("runnel").addHandler(handler)
    found = Listener("127.0.0.1", 0, "", Security(), taken.put, lambda: "")
    found.start()
    client = socket.socket()
    try:
        with no_descriptors(), caplog.at_level(logging.WARNING, "runnel"):
            client.connect(("127.0.0.1", found.port))
            client.sendall(b"RNL2")
            assert warned.wait(60)
            found._ended.wait(0.2)  # it has tried many times more
        stream = taken.get(timeout=60)
        stream.close()
        assert len([r for r in caplog.records if "could not be accepted" in r.message]) == 1
    finally:
        logging.getLogger("runnel").removeHandler(handler)
        client.close()
        found.close()
