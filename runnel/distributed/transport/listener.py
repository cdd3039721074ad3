"""Where others reach a task: one port for tasks, and for clients that speak gRPC.

A connection's first bytes, or TLS's application protocol, say which of the two it is. The listener
passes a client's bytes on to a gRPC server behind a local socket, which it starts when the first
client comes.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from runnel.distributed.security import PROTOCOL, Security, is_loopback, split_address
from runnel.distributed.transport.frame import MAGIC
from runnel.distributed.transport.stream import (
    GREETING_SECONDS,
    PlainStream,
    Stream,
    TlsStream,
    is_same_user,
)
from runnel.graph.errors import UnknownError

logger = logging.getLogger("runnel")

_HTTP2 = b"PRI "
_CHUNK = 1 << 18
_PAUSE_SECONDS = 0.2


class Listener:
    """Accepts connections on ``host:port`` and on the local socket ``local_name``."""

    def __init__(
        self,
        host: str,
        port: int,
        local_name: str,
        security: Security,
        greet: Callable[[Stream], None],
        grpc_path: Callable[[], str],
    ) -> None:
        """``greet`` takes up a task's connection; ``grpc_path()`` starts the server of clients."""
        self._security = security
        self._tls = security.server_context()
        self._greet = greet
        self._grpc_path = grpc_path
        self._sockets = [socket.create_server((host, port), family=_family(host), backlog=512)]
        self.port: int = self._sockets[0].getsockname()[1]
        if local_name:
            local = socket.socket(socket.AF_UNIX)
            local.bind(local_name)
            local.listen(512)
            self._sockets.append(local)
        self._ended = threading.Event()

    @property
    def _closed(self) -> bool:
        return self._ended.is_set()

    @classmethod
    def of_task(cls, task: str, address: str, *others: Any) -> Listener:
        """One on the address that a cluster has for ``task``."""
        host, port = split_address(address)
        try:
            return cls(_bound(host), port, *others)
        except OSError as error:
            raise UnknownError(
                None,
                None,
                f"{task} cannot listen on {address}: {error}. Another program may be using the "
                "port",
            ) from error

    def start(self) -> None:
        """Begins to accept."""
        for sock in self._sockets:
            threading.Thread(
                target=self._accept, args=(sock,), name="runnel-listener", daemon=True
            ).start()

    def _accept(self, listening: socket.socket) -> None:
        told = ""
        while not self._closed:
            try:
                sock, _ = listening.accept()
            except OSError as error:
                if self._closed:
                    return
                if told != str(error):
                    told = str(error)
                    logger.warning("A connection could not be accepted: %s", error)
                # Without file descriptors it would fail again at once: it stays in the queue.
                self._ended.wait(_PAUSE_SECONDS)
                continue
            told = ""
            threading.Thread(
                target=self._take_up, args=(sock,), name="runnel-greeting", daemon=True
            ).start()

    def _take_up(self, sock: socket.socket) -> None:
        try:
            sock.settimeout(GREETING_SECONDS)
            if sock.family == socket.AF_UNIX:
                if is_same_user(sock):
                    self._greet(PlainStream(sock))
                else:
                    sock.close()
            elif self._tls is not None:
                stream = TlsStream(sock, self._tls, True, None)
                if stream.protocol == PROTOCOL:
                    self._greet(stream)
                else:
                    self._pass_on(stream)
            else:
                first = sock.recv(len(MAGIC), socket.MSG_PEEK | socket.MSG_WAITALL)
                if first == MAGIC:
                    self._greet(PlainStream(sock))
                elif first == _HTTP2:
                    self._pass_on(PlainStream(sock))
                else:
                    sock.close()
        except (OSError, ssl.SSLError) as error:
            logger.debug("A connection was refused: %s", error)
            sock.close()

    def _pass_on(self, client: Any) -> None:
        """Passes bytes between a client and the gRPC server, until one of them hangs up."""
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._grpc_path())
        except BaseException:
            server.close()
            raise
        client.limit(None)
        behind = PlainStream(server)
        pumps = [
            threading.Thread(target=_pump, args=ends, name="runnel-client", daemon=True)
            for ends in ((client, behind), (behind, client))
        ]
        for pump in pumps:
            pump.start()

    def close(self) -> None:
        """Accepts no more."""
        self._ended.set()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


def _pump(source: Any, sink: Any) -> None:
    buffer = memoryview(bytearray(_CHUNK))
    try:
        while count := source.receive(buffer):
            sink.send(deque([buffer[:count]]), deque(), True)
    except OSError:
        pass
    finally:
        source.close()
        sink.close()


def _bound(host: str) -> str:
    """The address to listen on: the one that is named if it is loopback, else all of them."""
    if is_loopback(host):
        return "127.0.0.1" if host == "localhost" else host
    return "0.0.0.0"  # noqa: S104 (it was checked that this is wanted)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
