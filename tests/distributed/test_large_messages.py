"""A message of more than 2 GiB, over TCP and through shared memory, in bounded memory."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest

from runnel.distributed.messages import Bundle
from runnel.distributed.transport.connection import Connection
from runnel.distributed.transport.stream import PlainStream
from tests.machine_room import GIB, needs_room

SIZE = (1 << 31) + (1 << 24)


def _kilobytes(file: str, what: str) -> int:
    found = re.search(rf"{what}:\s+(\d+) kB", Path(file).read_text())
    return int(found.group(1)) * 1024 if found else 0


def _pair(kind: str) -> tuple[socket.socket, socket.socket]:
    if kind == "local":
        return socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        first = socket.create_connection(listening.getsockname())
        return first, listening.accept()[0]


@pytest.mark.timeout(300)
@needs_room(memory=6 * GIB)
@pytest.mark.parametrize("kind", ["local", "tcp"])
def test_a_message_of_more_than_two_gib_takes_its_size_once(kind):
    arrived: Queue[Any] = Queue()
    one, other = [
        Connection(PlainStream(sock), lambda *got: arrived.put(got), lambda *lost: None, 1 << 40)
        for sock in _pair(kind)
    ]
    value = np.zeros(SIZE, np.uint8)  # takes no memory itself, until it is written
    value[-1] = 7
    Path("/proc/self/clear_refs").write_text("5")  # the peak is from now on
    before = _kilobytes("/proc/self/status", "VmHWM")
    try:
        other.start()
        one.send(Bundle(1, 2, 3, (("large", 1),)), [value])
        _, _, [got] = arrived.get(timeout=240)
        assert got.nbytes == SIZE and got[-1] == 7 and not got[: 1 << 20].any()
        # Through shared memory this process has it twice, as the sender and as the receiver.
        most = (2.2 if kind == "local" else 1.2) * SIZE
        assert _kilobytes("/proc/self/status", "VmHWM") - before < most
    finally:
        one.close("the test is over")
        other.close("the test is over")
