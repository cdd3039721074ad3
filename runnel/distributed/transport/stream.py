"""Bytes over a socket, plain or through TLS: what a connection is made of.

A stream is read by one thread and written by one at a time; both may go on at once.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import socket
import ssl
import struct
import termios
import threading
from collections import deque
from typing import Any, Protocol

GREETING_SECONDS = 10.0
"""For how long either side may take to say who it is."""
_MOST_BUFFERS = 64
_MOST_DESCRIPTORS = 16
_CHUNK = 1 << 18
_RECEIVED = socket.SOL_SOCKET, getattr(socket, "SCM_RIGHTS", 1)

Buffers = deque[Any]
"""Bytes, memoryviews, arrays of bytes."""


class OpenFile(Protocol):
    """A file that is closed when nothing refers to it any more."""

    def fileno(self) -> int:
        """Its descriptor."""


Files = deque[OpenFile]


class Stream(Protocol):
    """A connection's two directions."""

    descriptors: deque[int]
    """Open files that the other side has sent, in order (over a local socket only)."""

    def send(self, buffers: Buffers, files: Files, wait: bool) -> None:
        """Sends ``buffers`` and takes them off the list; without ``wait``, what goes at once.

        ``files`` go with them over a local socket, before the last of the bytes.
        """

    def receive(self, into: memoryview) -> int:
        """Waits for some bytes; 0 when the other side has closed."""

    def unread(self) -> int:
        """At most how many of the bytes that were sent the other side has yet to read.

        Known of a local socket only.
        """

    def limit(self, seconds: float | None) -> None:
        """Sets for how long either direction may wait."""

    def end(self) -> None:
        """Ends both directions; what has come can still be received, and then the end."""

    def close(self) -> None:
        """Ends both directions; who waits in them gets an error or the end."""


class PlainStream:
    """A TCP or local socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.is_local = sock.family == getattr(socket, "AF_UNIX", None)
        if not self.is_local:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.descriptors: deque[int] = deque()
        self._room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * 4) if self.is_local else 0

    def send(self, buffers: Buffers, files: Files, wait: bool) -> None:
        flags = 0 if wait else socket.MSG_DONTWAIT
        while buffers:
            try:
                if files:
                    sent = self._send_files(buffers[0], files, flags)
                elif len(buffers) == 1:
                    sent = self._socket.send(buffers[0], flags)
                else:
                    batch = [buffers[i] for i in range(min(len(buffers), _MOST_BUFFERS))]
                    sent = self._socket.sendmsg(batch, [], flags)
            except BlockingIOError:
                return
            _take_off(buffers, sent)

    def _send_files(self, buffer: Any, files: Files, flags: int) -> int:
        """Sends as many files as the other side has room for, and takes them off the list.

        More of them have to go with other bytes, so that one byte goes with these: a system call
        receives the files of one that has sent them, never of two.
        """
        batch = [files[i] for i in range(min(len(files), _MOST_DESCRIPTORS))]
        attached = array.array("i", [file.fileno() for file in batch])
        if len(batch) < len(files):
            buffer = memoryview(buffer)[:1]
        sent = self._socket.sendmsg([buffer], [(*_RECEIVED, attached)], flags)
        for _ in batch:
            files.popleft()
        return sent

    def receive(self, into: memoryview) -> int:
        if not self.is_local:
            return self._socket.recv_into(into)
        count, attached, flags, _ = self._socket.recvmsg_into([into], self._room)
        for level, kind, content in attached:
            if (level, kind) == _RECEIVED:
                found = array.array("i")
                found.frombytes(content[: len(content) - len(content) % found.itemsize])
                self.descriptors.extend(found)
        if flags & socket.MSG_CTRUNC:
            # The system has dropped them, and nobody can send them again.
            raise OSError(
                errno.EMFILE,
                "this process has no file descriptors left for shared memory. Raise its limit "
                "(ulimit -n), or set RUNNEL_TRANSPORT=tcp",
            )
        return count

    def unread(self) -> int:
        if not self.is_local:
            return 0
        try:
            found = fcntl.ioctl(self._socket, termios.TIOCOUTQ, bytes(4))
        except (OSError, ValueError):  # it was closed in this moment
            return 0
        return int(struct.unpack("i", found)[0])

    def limit(self, seconds: float | None) -> None:
        self._socket.settimeout(seconds)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.end()
        self._socket.close()
        while self.descriptors:
            with contextlib.suppress(OSError):
                os.close(self.descriptors.popleft())


class TlsStream:
    """A TCP socket with TLS in memory: an object of OpenSSL's is for one thread at a time."""

    is_local = False

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, server_side: bool, name: str | None
    ) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        hostname = None if server_side else name
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=hostname
        )
        # Guards the object of OpenSSL's and its two buffers; never held while the network is slow.
        self._lock = threading.Lock()
        # Held while encrypted bytes leave, so that they leave in the order in which they were made.
        self._leaving = threading.Lock()
        self._unsent: Buffers = deque()
        self.descriptors: deque[int] = deque()
        self._read_buffer = bytearray(_CHUNK)
        self._shake_hands()

    @property
    def protocol(self) -> str | None:
        """What both sides agreed to speak (ALPN)."""
        return self._tls.selected_alpn_protocol()

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._socket.sendall(self._outgoing.read())
                content = self._socket.recv(_CHUNK)
                if not content:
                    raise ConnectionResetError("closed while TLS was set up") from None
                self._incoming.write(content)
        self._socket.sendall(self._outgoing.read())

    def send(self, buffers: Buffers, files: Files, wait: bool) -> None:
        while buffers or self._unsent:
            if not self._unsent and buffers:
                with self._lock:
                    written = self._tls.write(memoryview(buffers[0])[:_CHUNK])
                    self._unsent.append(memoryview(self._outgoing.read()))
                _take_off(buffers, written)
            if not self._leave(wait):
                # What is encrypted has to leave before anything else: the next call sees to it.
                return

    def _leave(self, wait: bool) -> bool:
        """Sends what is encrypted; False if some of it is left, or a thread is about to send it."""
        flags = 0 if wait else socket.MSG_DONTWAIT
        if not self._leaving.acquire(blocking=wait):
            return False
        try:
            while self._unsent:
                try:
                    sent = self._socket.send(self._unsent[0], flags)
                except BlockingIOError:
                    return False
                _take_off(self._unsent, sent)
        finally:
            self._leaving.release()
        return True

    @property
    def has_unsent(self) -> bool:
        """True when encrypted bytes still have to leave."""
        return bool(self._unsent)

    def receive(self, into: memoryview) -> int:
        while True:
            with self._lock:
                try:
                    return self._tls.read(len(into), into)  # type: ignore[arg-type,return-value]
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLZeroReturnError:
                    return 0
                # A change of keys is answered by the thread that reads. It must not wait: what
                # cannot leave now does so before the next message.
                answer = self._outgoing.read()
                if answer:
                    self._unsent.append(memoryview(answer))
            if answer:
                self._leave(wait=False)
            count = self._socket.recv_into(self._read_buffer)
            if not count:
                return 0
            with self._lock:
                self._incoming.write(memoryview(self._read_buffer)[:count])

    def unread(self) -> int:
        return 0

    def limit(self, seconds: float | None) -> None:
        self._socket.settimeout(seconds)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.end()
        self._socket.close()


def _take_off(buffers: Any, sent: int) -> None:
    """Removes the first ``sent`` bytes of ``buffers``."""
    while buffers and sent >= len(buffers[0]):
        sent -= len(buffers.popleft())
    if sent:
        buffers[0] = memoryview(buffers[0])[sent:]


def is_same_user(sock: socket.socket) -> bool:
    """True when the process at the other end of a local socket is of this user, or root's."""
    content = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", content)
    return user in (os.getuid(), 0)
