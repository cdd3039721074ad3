"""A call of a collective by one member, and a group as one of its tasks knows it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runnel.queues.joint_calls import Joint
from runnel.queues.waiter import Waiter

Exchange = Generator[str, Any, Any]
"""A call under way: yields the key of the message that it needs, is sent it, returns its result."""
Send = Callable[[int, str, np.ndarray], None]
"""Sends an array to the member of a rank, under a key that it asks for."""
Begin = Callable[[int, int, Send], Exchange]
"""What a member does, given its rank, the number of members, and how to send to the others."""


@dataclass(eq=False)
class Call:
    """What one member does once; the waiter is told its result, within ``seconds`` if not 0."""

    member: str
    group: int
    size: int
    instance: int
    begin: Begin
    waiter: Waiter
    seconds: float = 0.0
    joint: Joint | None = None
    """The same for a fabric."""
    hint: str = "auto"
    """``ring``: not through a fabric; ``nccl``: not otherwise; ``auto``: where that is best."""
    round: int = 0
    exchange: Exchange | None = None
    timer: threading.Timer | None = None

    def stop_timer(self) -> None:
        """The call has ended."""
        if self.timer is not None:
            self.timer.cancel()


@dataclass
class CollectiveGroup:
    """A group as one of its tasks knows it."""

    size: int
    generation: str = ""
    """Names this formation of the group; empty until the leader has told who its members are."""
    members: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """The members' places in the fabric that joins them all; empty if none does."""
    joined: set[str] = field(default_factory=set)
    rounds: dict[tuple[str, int], int] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    arrived: dict[str, np.ndarray] = field(default_factory=dict)
    expected: dict[str, Call] = field(default_factory=dict)


def data_key(call: Call, generation: str, receiver: int, key: str) -> str:
    """The key of a message of a call for the member ``receiver``."""
    return f"data {call.group} {generation} {call.instance}/{call.round}/{receiver}/{key}"


def task_of(member: str) -> str:
    """The task of a member."""
    return member.rpartition("/")[0]


def natural(member: str) -> list[Any]:
    """Sorts task 10 behind task 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", member)]
