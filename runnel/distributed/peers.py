"""The channels of a task to others: opened when a task needs them, used both ways.

Both sides first say who they are (``Hello``): the task, its incarnation (a number that another life
of the task does not share), its devices. On one machine a connection moves to a local socket, over
which processes can share memory; within one process it moves to a channel without any bytes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runnel.distributed.health import Pulse
from runnel.distributed.messages import Message
from runnel.distributed.protocol.worker_pb2 import Device, Envelope, Hello
from runnel.distributed.security import Security, split_address
from runnel.distributed.transport.backlog import Backlog
from runnel.distributed.transport.connection import Channel, Connection
from runnel.distributed.transport.in_process import channel_pair
from runnel.distributed.transport.stream import (
    GREETING_SECONDS,
    PlainStream,
    Stream,
    TlsStream,
)
from runnel.distributed.wire import Malformed
from runnel.graph.errors import CancelledError, OpError, UnauthenticatedError, UnavailableError

logger = logging.getLogger("runnel")

VERSION = 2
_RETRY_SECONDS = 0.05
_LONGEST_RETRY = 1.0
_TELL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """Who a task is."""

    task: str
    devices: tuple[Any, ...] = ()
    incarnation: int = field(default_factory=lambda: secrets.randbits(63) | 1)
    host: str = field(default_factory=lambda: _host())

    @property
    def local_name(self) -> str:
        """The name of the local socket, which is no file; "" where there is none."""
        return f"\0runnel-{self.incarnation:x}" if sys.platform == "linux" else ""

    def hello(self, **more: Any) -> Envelope:
        """The message that says so."""
        found = Envelope()
        found.hello.CopyFrom(
            Hello(
                version=VERSION,
                task=self.task,
                incarnation=self.incarnation,
                host=self.host,
                local_path=self.local_name[1:],
                devices=[
                    Device(
                        name=device.name,
                        type=device.device_type,
                        memory=device.memory_limit_bytes,
                        hardware=device.hardware,
                    )
                    for device in self.devices
                ],
                **more,
            )
        )
        return found


Lost = Callable[[Any, Exception], None]
Receive = Callable[[Any, Message, list[Any]], None]

# The tasks of this process by address, and its lock: for channels within the process.
_here: dict[str, Peers] = {}
_here_lock = threading.Lock()


class Peers:
    """The channels of one task."""

    def __init__(
        self,
        me: TaskIdentity,
        security: Security,
        receive: Receive,
        lost: Lost,
        deadline: float,
        most_bytes: int,
    ) -> None:
        self.me = me
        self.deadline = deadline
        self._uses_local_sockets = (
            sys.platform == "linux" and os.environ.get("RUNNEL_TRANSPORT") != "tcp"
        )
        self._security = security
        self._receive = receive
        self._told_lost = lost
        self._most_bytes = most_bytes
        self.backlog = Backlog()
        # Guards the tables; never held while a task is dialled or greeted.
        self._lock = threading.Lock()
        self._channels: dict[str, Any] = {}
        self._all: dict[Any, Pulse] = {}
        self.devices: dict[str, list[Device]] = {}
        """What each task that was met has said of its devices."""
        self._dialling: dict[str, threading.Lock] = {}
        self._closed: str | None = None
        self._address = ""

    # Meeting --------------------------------------------------------------------------------

    def channel(
        self,
        task: str,
        address: str,
        patience: float = 0.0,
        given_up: Callable[[], str | None] = lambda: None,
    ) -> Any:
        """The channel to ``task``, which is dialled for at most ``patience`` seconds if need be.

        ``given_up()`` says why nobody wants it any more.
        """
        with self._lock:
            dialling = self._dialling.setdefault(task, threading.Lock())
        limit = time.monotonic() + patience
        told, pause = time.monotonic(), _RETRY_SECONDS
        while (known := self.known(task)) is None:
            self._require_wanted(task, given_up)
            try:
                # For one attempt only: who dials now may be more patient than this caller.
                if not dialling.acquire(timeout=_RETRY_SECONDS):
                    continue
                try:
                    return self.known(task) or self._dial(task, address)
                finally:
                    dialling.release()
            except (OSError, EOFError, Malformed) as error:
                now = time.monotonic()
                if now >= limit:
                    raise _unreachable(task, address, error) from error
                if now - told >= _TELL_SECONDS:
                    told = now
                    why = str(error) or "it hung up"
                    logger.warning("Still waiting for %s at %s (%s)", task, address, why)
            threading.Event().wait(pause)
            pause = min(2 * pause, _LONGEST_RETRY)
        return known

    def known(self, task: str) -> Any:
        """The channel to a task that was met, or None."""
        channel = self._channels.get(task)
        return channel if channel is not None and channel.error is None else None

    def _require_wanted(self, task: str, given_up: Callable[[], str | None]) -> None:
        if self._closed is not None:
            raise UnavailableError(None, None, self._closed)
        why = given_up()
        if why is not None:
            raise CancelledError(None, None, f"{task} is not waited for any more: {why}")

    def _dial(self, task: str, address: str) -> Any:
        with _here_lock:
            other = _here.get(_normal(address))
        if other is not None and other is not self:
            return self._meet_here(other)
        connection, hello = self._met(self._stream_to(address), task)
        name = f"\0{hello.local_path}" if hello.local_path else ""
        if name and hello.host == self.me.host and self._uses_local_sockets:
            # Before the other side has taken this one up: it might use it, and find it closed.
            local = socket.socket(socket.AF_UNIX)
            try:
                local.settimeout(GREETING_SECONDS)
                local.connect(name)
                moved = self._met(PlainStream(local), task)
                self._introduce(*moved)
                connection.discard()
                connection, hello = moved
            except (OSError, EOFError):
                local.close()  # another network namespace: TCP it is
                self._introduce(connection, hello)
            except BaseException:
                connection.discard()
                raise
        else:
            self._introduce(connection, hello)
        return self._keep(connection, hello)

    def _stream_to(self, address: str) -> Stream:
        host, port = split_address(address)
        sock = socket.create_connection((host, port), GREETING_SECONDS)
        try:
            context = self._security.client_context()
            if context is None:
                return PlainStream(sock)
            return TlsStream(sock, context, False, host)
        except BaseException:
            sock.close()
            raise

    def _met(self, stream: Stream, task: str) -> tuple[Connection, Hello]:
        """A connection that this side has made, after the other has said who it is."""
        connection = Connection(stream, self._receive, self._lost, self._most_bytes, self.backlog)
        connection.task = task
        try:
            nonce = secrets.token_bytes(16)
            connection.send(self.me.hello(nonce=nonce))
            hello = _hello(connection.read_first())
            if hello.refused:
                raise UnauthenticatedError(None, None, f"{task} refused: {hello.refused}")
            if not self._security.accepts(hello.proof, nonce, "server"):
                raise UnauthenticatedError(None, None, f"{task} does not know this cluster's token")
            if hello.task != task:
                raise UnavailableError(
                    None,
                    None,
                    f"{hello.task} answers at the address of {task}: the tasks have different "
                    "ideas of the cluster",
                )
        except BaseException:
            connection.discard()
            raise
        connection.incarnation = hello.incarnation
        return connection, hello

    def _introduce(self, connection: Connection, hello: Hello) -> None:
        """Proves to the other side, which has said ``hello``, who this one is."""
        try:
            proof = self._security.proof(hello.nonce, "client")
            connection.send(Envelope(hello=Hello(proof=proof)))
            welcome = _hello(connection.read_first())
            if welcome.refused:
                refused = f"{connection.task} refused: {welcome.refused}"
                raise UnauthenticatedError(None, None, refused)
        except BaseException:
            connection.discard()
            raise

    def greet(self, stream: Stream) -> None:
        """Takes up a connection that another task has made."""
        connection = Connection(stream, self._receive, self._lost, self._most_bytes, self.backlog)
        try:
            hello = _hello(connection.read_first())
            nonce = secrets.token_bytes(16)
            if hello.version != VERSION:
                why = f"it speaks version {VERSION} of the protocol, not {hello.version}"
                connection.send(self.me.hello(refused=why))
                connection.discard()
                return
            proof = self._security.proof(hello.nonce, "server")
            connection.task = hello.task or "a client"
            connection.send(self.me.hello(nonce=nonce, proof=proof))
            answer = _hello(connection.read_first())
            if not self._security.accepts(answer.proof, nonce, "client"):
                refused = "the token is not this cluster's (RUNNEL_CLUSTER_TOKEN)"
                connection.send(Envelope(hello=Hello(refused=refused)))
                connection.discard()
                return
            connection.send(Envelope(hello=Hello(version=VERSION)))
            connection.incarnation = hello.incarnation
            self._keep(connection, hello)
        except (OSError, EOFError, Malformed, OpError) as error:
            logger.debug("A connection ended before it had begun: %s", error)
            connection.discard()

    def _meet_here(self, other: Peers) -> Any:
        mine, theirs = channel_pair([(self._receive, self._lost), (other._receive, other._lost)])
        mine.task, mine.incarnation = other.me.task, other.me.incarnation
        theirs.task, theirs.incarnation = self.me.task, self.me.incarnation
        try:
            other._keep(theirs, self.me.hello().hello)
        except UnavailableError as error:  # as if it had closed its socket: it may come back
            raise ConnectionAbortedError(error.message) from error
        return self._keep(mine, other.me.hello().hello)

    def _keep(self, channel: Any, hello: Hello) -> Any:
        before = None
        with self._lock:
            closed = self._closed
            if closed is None:
                known = self._channels.get(channel.task)
                self._all[channel] = Pulse(time.monotonic(), self.deadline)
                self.devices[channel.task] = list(hello.devices)
                if known is None or known.error is not None:
                    self._channels[channel.task] = channel
                elif known.incarnation != channel.incarnation:
                    before, self._channels[channel.task] = known, channel
        if closed is not None:
            channel.close(closed)
            raise UnavailableError(None, None, closed)
        if before is not None:
            before.close(f"{channel.task} was started anew")
        channel.start()
        return channel

    # Parting --------------------------------------------------------------------------------

    def _lost(self, channel: Any, error: Exception) -> None:
        with self._lock:
            known = self._all.pop(channel, None) is not None
            current: Any = self._channels.get(channel.task)
            if current is channel:
                del self._channels[channel.task]
                who = (channel.task, channel.incarnation)
                for other in self._all:  # the other side may have dialled, too
                    if (other.task, other.incarnation) == who and other.error is None:
                        self._channels[channel.task] = other
                        break
        if known:
            self._told_lost(channel, error)

    def tick(self) -> None:
        """Asks those who are silent, and gives up those who have been for too long."""
        now = time.monotonic()
        with self._lock:
            channels = list(self._all.items())
        for channel, pulse in channels:
            channel.give_back_idle(now)
            heard, channel.heard = channel.heard, False
            # Who is at work on a message hears nothing meanwhile, whatever the other side says.
            verdict = pulse.tick(now, heard or channel.is_receiving)
            if verdict == "lost":
                channel.close(f"nothing was heard of it for {self.deadline:g} s")
            elif verdict == "ask" or channel.is_receiving:
                ping(channel)  # also to be heard: who is at work on a message answers none

    def listen_here(self, address: str) -> None:
        """Lets the other tasks of this process find this one without a network."""
        self._address = _normal(address)
        with _here_lock:
            _here[self._address] = self

    def close(self, why: str) -> None:
        """Ends all channels."""
        with _here_lock:
            if _here.get(self._address) is self:
                del _here[self._address]
        with self._lock:
            self._closed = why
            channels = list(self._all)
        for channel in channels:
            channel.close(why)

    def channels(self) -> list[Channel]:
        """Those that are open."""
        with self._lock:
            return list(self._all)


def ping(channel: Any) -> None:
    """Asks whether another task is there, and what time it is."""
    question = Envelope()
    question.ping.sent_ns = time.time_ns()
    with contextlib.suppress(OpError):
        channel.send(question, wait=False)


def _unreachable(task: str, address: str, why: Exception) -> UnavailableError:
    error = UnavailableError(
        None,
        None,
        f"{task} cannot be reached at {address}: {str(why) or 'it hung up'}. Is it running, and "
        "does every task have the same cluster?",
    )
    error.task = task  # type: ignore[attr-defined]
    return error


def _hello(message: Message) -> Hello:
    if not isinstance(message, Envelope) or message.WhichOneof("content") != "hello":
        raise Malformed("it does not begin with a greeting")
    return message.hello


def _normal(address: str) -> str:
    host, port = split_address(address)
    return f"{'localhost' if host in ('127.0.0.1', '::1', 'localhost') else host}:{port}"


def _host() -> str:
    """Equal for all processes of one machine, until it is started again."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return socket.gethostname()
