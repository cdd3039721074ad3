"""Channels between the tasks of one process: they hand messages over and copy values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from runnel.distributed.clock_offset import ClockOffset
from runnel.distributed.messages import Message
from runnel.distributed.transport.connection import GivenUp, Received
from runnel.graph.errors import UnavailableError
from runnel.queues.rendezvous import DEAD


class InProcessChannel:
    """One side; a thread of its own hands over what the other side has sent."""

    other: InProcessChannel

    def __init__(self, receive: Received, lost: Callable[[Any, Exception], None]) -> None:
        self.task = ""
        self.incarnation = 0
        self.clock = ClockOffset()
        self.heard = True
        self.is_receiving = False
        self.sent_bytes = self.received_bytes = 0  # nothing becomes bytes here
        self.error: Exception | None = None
        self._receive = receive
        self._lost = lost
        self._arrived: SimpleQueue[Any] = SimpleQueue()
        self._ended = threading.Lock()  # taken once, by who ends the channel

    def start(self) -> None:
        """Begins to hand over."""
        threading.Thread(
            target=self._hand_over, name=f"runnel-reader-{self.task}", daemon=True
        ).start()

    def send(
        self,
        message: Message,
        values: Sequence[Any] = (),
        wait: bool = True,
        given_up: GivenUp | None = None,
    ) -> None:
        if self.error is not None:
            raise self.error
        copies = [value if value is DEAD else np.array(np.asarray(value)) for value in values]
        self.other._arrived.put((message, copies))

    def give_back_idle(self, now: float) -> None:
        """Nothing is kept here."""

    def _hand_over(self) -> None:
        while True:
            message = self._arrived.get()
            if isinstance(message, str):  # why one of the sides has ended the channel
                self._end(message)
                return
            self.heard = True
            self.is_receiving = True
            try:
                self._receive(self, *message)
            except BaseException as error:
                self.close(f"{type(error).__name__}: {error}")
                raise
            self.is_receiving = False

    def close(self, why: str) -> None:
        """Ends the channel; the other side is told after all that was sent before."""
        self._end(why)
        for side in (self, self.other):
            side._arrived.put(why)

    def _end(self, why: str) -> None:
        if self._ended.acquire(blocking=False):
            self.error = UnavailableError(
                None, None, f"The connection to {self.task} is lost: {why}"
            )
            self.error.task = self.task  # type: ignore[attr-defined]
            self._lost(self, self.error)


def channel_pair(
    ends: Sequence[tuple[Received, Callable[[Any, Exception], None]]],
) -> tuple[InProcessChannel, InProcessChannel]:
    """Two channels, each the other's end."""
    first, second = [InProcessChannel(*end) for end in ends]
    first.other, second.other = second, first
    return first, second
