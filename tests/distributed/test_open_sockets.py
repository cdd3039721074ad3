"""Sockets that a library has opened, found and closed."""

from __future__ import annotations

import socket
import sys

import pytest

from runnel.distributed.open_sockets import hang_up, open_sockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors are found in /proc")


def test_connections_end_and_those_that_listen_or_came_later_do_not():
    before = open_sockets()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_connection(listening.getsockname()) as near:
            far, _ = listening.accept()
            with far:
                found = {d: name for d, name in open_sockets().items() if d not in before}
                assert {near.fileno(), far.fileno(), listening.fileno()} <= set(found)
                of_near = {near.fileno(): found[near.fileno()]}
                hang_up({near.fileno(): found[far.fileno()]})  # another has the descriptor now
                far.sendall(b"still there")
                assert near.recv(20) == b"still there"
                hang_up({**of_near, listening.fileno(): found[listening.fileno()]})
                far.settimeout(60)
                assert far.recv(20) == b""
        with socket.create_connection(listening.getsockname()):
            listening.accept()[0].close()
