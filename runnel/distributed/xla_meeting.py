"""Where tasks meet before XLA joins their processes.

XLA ends a process that waits in vain for another one, or that finds something else at an address.
So before XLA hears anything, every task has asked every other whether it is there: at its address
in the cluster, where its server is going to listen. A server that already runs takes no part: the
processes were joined, or not, before this one was started.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from runnel.distributed import wire
from runnel.distributed.messages import Message
from runnel.distributed.peers import Peers, TaskIdentity
from runnel.distributed.protocol.worker_pb2 import Envelope, Question
from runnel.distributed.security import Security, split_address
from runnel.distributed.transport.listener import Listener
from runnel.graph.errors import (
    DeadlineExceededError,
    OpError,
    UnavailableError,
    UnimplementedError,
)

QUESTION = "meeting"
_MOST_BYTES = 1 << 16
_SILENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Agreed:
    """What the first task says to the others: where XLA's coordinator will be."""

    address: str
    name: str
    """Tells what is joined now from what was joined before."""


class XlaMeeting:
    """This task at the meeting of ``tasks``, from ``with`` on until all are joined."""

    def __init__(
        self, task: str, tasks: Sequence[str], addresses: dict[str, str], security: Security
    ) -> None:
        self._task, self._tasks, self._addresses = task, list(tasks), addresses
        me = TaskIdentity(task)
        self._peers = Peers(me, security, self._receive, self._lost, _SILENCE_SECONDS, _MOST_BYTES)
        self._listener = Listener.of_task(
            task, addresses[task], me.local_name, security, self._peers.greet, _no_clients
        )
        # Where the coordinator would be if this task were the first.
        self._word = f"{_free_port()} {secrets.token_hex(8)}"
        # Guards the questions that have no answer yet.
        self._lock = threading.Lock()
        self._asked: dict[Any, Future[bytes]] = {}
        self._given_up = ""

    def __enter__(self) -> XlaMeeting:
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._peers.close("the meeting is over")

    def agree(self, seconds: float) -> Agreed | None:
        """Waits for all tasks; None when one of them runs already."""
        limit = time.monotonic() + seconds
        others = [task for task in self._tasks if task != self._task]
        words = {self._task: self._word}
        with ThreadPoolExecutor(len(others) or 1, "runnel-meeting") as pool:
            try:
                asking = {pool.submit(self._ask, task, limit): task for task in others}
                for future in as_completed(asking):
                    words[asking[future]] = future.result()
            except UnimplementedError:  # a server does not know the question
                return None
            finally:
                self._give_up("not all tasks have come" if len(words) <= len(others) else "")
        port, name = words[self._tasks[0]].split(" ")
        host, _ = split_address(self._addresses[self._tasks[0]])
        return Agreed(f"{host}:{port}", name)

    def _give_up(self, why: str) -> None:
        """Ends the questions that have no answer yet."""
        self._given_up = why
        with self._lock:
            asked, self._asked = self._asked, {}
        for answer in asked.values():
            answer.set_exception(ConnectionError(why))

    def _ask(self, task: str, limit: float) -> str:
        """What ``task`` says, which is waited for until ``limit``."""
        while True:
            left = max(limit - time.monotonic(), 0.0)
            channel = self._peers.channel(
                task, self._addresses[task], left, lambda: self._given_up or None
            )
            answer: Future[bytes] = Future()
            with self._lock:
                self._asked[channel] = answer
            try:
                channel.send(Envelope(question=Question(number=1, about=QUESTION)))
                return answer.result(left).decode()
            except (ConnectionError, UnavailableError) as error:
                # It leaves the meeting, or dies; it may come again.
                if left == 0.0 or self._given_up:
                    raise UnavailableError(None, None, f"{task} is lost: {error}") from None
            except TimeoutError:
                raise DeadlineExceededError(None, None, f"{task} does not answer") from None

    def _receive(self, channel: Any, envelope: Message, _: list[Any]) -> None:
        if not isinstance(envelope, Envelope):
            return  # of a step: there are none here
        kind = envelope.WhichOneof("content")
        if kind == "question":
            answer = Envelope()
            answer.answer.number = envelope.question.number
            answer.answer.content = self._word.encode()
            with contextlib.suppress(OpError):
                channel.send(answer, wait=False)
        elif kind == "answer":
            with self._lock:
                asked = self._asked.pop(channel, None)
            if asked is not None and envelope.answer.HasField("failure"):
                asked.set_exception(wire.error_of(envelope.answer.failure))
            elif asked is not None:
                asked.set_result(envelope.answer.content)

    def _lost(self, channel: Any, error: Exception) -> None:
        with self._lock:
            asked = self._asked.pop(channel, None)
        if asked is not None:
            asked.set_exception(ConnectionError(str(error)))


def _no_clients() -> str:
    raise OSError("clients are answered when the server has started")


def _free_port() -> int:
    with socket.create_server(("", 0)) as sock:
        return int(sock.getsockname()[1])
