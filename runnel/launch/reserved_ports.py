"""Ports of this machine that are kept for tasks, from before they start until the job has ended."""

from __future__ import annotations

import socket
import sys


class ReservedPorts:
    """Ports that nobody else on this machine is given while this is open.

    Each is bound to a socket that never listens. On Linux another socket may listen on such a port
    if both allow it (``SO_REUSEADDR``, which servers set), and the kernel hands it to nobody who
    asks for any port. So a task can be started, die and be started again at one address, and while
    it is dead whoever connects is refused at once. Elsewhere the ports are free from
    :meth:`release` on, shortly before the tasks bind them.
    """

    def __init__(self, count: int, host: str = "127.0.0.1", port: int = 0) -> None:
        """``port`` asks for a certain one; an ``OSError`` if it is taken."""
        self._sockets: list[socket.socket] = []
        try:
            for _ in range(count):
                sock = socket.socket()
                self._sockets.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((host, port))
        except BaseException:
            self.close()
            raise
        self.numbers: list[int] = [sock.getsockname()[1] for sock in self._sockets]

    def release(self) -> None:
        """Lets tasks bind the ports."""
        if sys.platform != "linux":
            self.close()

    def close(self) -> None:
        """Gives the ports back."""
        for sock in self._sockets:
            sock.close()

    def __enter__(self) -> ReservedPorts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
