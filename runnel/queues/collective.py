"""Collectives: members on several tasks exchange values, and each gets the same result.

Who takes part in a *group* is found by the group's leader, a task that all know: members join, and
when as many have come as the group has, the leader tells each who they are. From then on the n-th
call of an instance at one member belongs together with the n-th at every other. Two members give
each other their values. Among more, a large value goes around a ring in as many pieces as there are
members, each of which adds its own: a member sends and receives twice the size of the value,
however many members there are. Every member gets the same bits.

A call that fails at one member fails at all, and the group is over; the next calls form it anew.
Nothing here waits: a call is a generator that asks for a message by its key and goes on, on the
thread that brings it.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runnel.graph.errors import (
    AbortedError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from runnel.queues.buffers import Buffers
from runnel.queues.waiter import WAITING, Waiter

Exchange = Generator[str, Any, Any]
"""A call under way: yields the key of the message that it needs, is sent it, returns its result."""
Post = Callable[[str, str, np.ndarray], None]
"""Sends an array under a key to the task of a name; must not wait."""

_REMEMBERED = 256

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
    round: int = 0
    exchange: Exchange | None = None
    timer: threading.Timer | None = None

    def stop_timer(self) -> None:
        """The call has ended."""
        if self.timer is not None:
            self.timer.cancel()


@dataclass
class _Group:
    """A group as one of its tasks knows it."""

    size: int
    generation: str = ""
    """Names this formation of the group; empty until the leader has told who its members are."""
    members: tuple[str, ...] = ()
    joined: set[str] = field(default_factory=set)
    rounds: dict[tuple[str, int], int] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    arrived: dict[str, np.ndarray] = field(default_factory=dict)
    expected: dict[str, Call] = field(default_factory=dict)


class Collectives:
    """What one task knows of the groups that its devices are in; the leader's part, too.

    Keys of messages begin with what they are: ``join`` or ``leave`` the group that is formed,
    ``form``, ``data``, ``over``.
    """

    def __init__(self) -> None:
        self.task = ""
        self.buffers = Buffers()
        """Memory for results."""
        self._leader = ""
        self._post_to: Post | None = None
        # Guards the tables; not held while values are added up or sent.
        self._lock = threading.Lock()
        self._groups: dict[int, _Group] = {}
        self._forming: dict[int, dict[str, str]] = {}
        """At the leader: the members that have joined, and their tasks."""
        self._told: dict[int, tuple[str, list[str]]] = {}
        """At the leader: the last generation of each group, and the tasks that were told of it."""
        self._over: dict[str, None] = {}
        """The last generations that are over: messages of them may still come."""

    def connect(self, task: str, leader: str, post: Post) -> None:
        """Makes this a task of a cluster."""
        self.task, self._leader, self._post_to = task, leader, post

    # Calls ----------------------------------------------------------------------------------

    def start(self, call: Call) -> Any:
        """Begins a call; its waiter is told the result."""
        call.member = f"{self.task}/{call.member}"
        call.waiter.place = self
        with self._lock:
            group = self._groups.get(call.group)
            if group is None:
                group = self._groups[call.group] = _Group(call.size)
            if group.size != call.size:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"The group {call.group} has {group.size} members for one operation and "
                    f"{call.size} for another",
                )
            if group.members and call.member not in group.members:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"{call.member} takes part in the group {call.group}, which has its "
                    f"{group.size} members: {', '.join(group.members)}",
                )
            counted = call.member, call.instance
            call.round = group.rounds.get(counted, 0)
            group.rounds[counted] = call.round + 1
            if call.seconds > 0:
                call.timer = threading.Timer(call.seconds, self._ran_out, [group, call])
                call.timer.daemon = True
            group.calls.append(call)
            formed, joins = bool(group.members), call.member not in group.joined
            group.joined.add(call.member)
        if call.timer is not None:
            call.timer.start()  # which ends at once if the call has
        if formed:
            self._go_on(group, call, None)
        elif joins:
            try:
                self._post(self._leader, f"join {call.group} {call.size} {call.member}")
            except OpError as error:  # nobody waits for a member that the leader has not heard of
                self._end(call.group, group, error)
        return WAITING

    def cancel(self, waiter: Waiter) -> bool:
        """Forgets a call: its step was stopped, so it fails at the other members, too."""
        with self._lock:
            found = [
                (number, group, call)
                for number, group in self._groups.items()
                for call in group.calls
                if call.waiter is waiter
            ]
            for _, group, call in found:
                group.calls.remove(call)
                call.stop_timer()
        for number, group, call in found:
            why = AbortedError(None, None, f"{call.member} has given up its step")
            self._end(number, group, why)
        return bool(found)

    def _go_on(self, group: _Group, call: Call, message: np.ndarray | None) -> None:
        """Drives a call until it lacks a message, or has its result."""
        try:
            rank = group.members.index(call.member)
            if call.exchange is None:

                def send(to: int, key: str, value: np.ndarray) -> None:
                    name = _data_key(call, group.generation, to, key)
                    self._post(_task_of(group.members[to]), name, value)

                call.exchange = call.begin(rank, group.size, send)
            while True:
                name = _data_key(call, group.generation, rank, call.exchange.send(message))
                with self._lock:
                    message = group.arrived.pop(name, None)
                    if message is None:
                        group.expected[name] = call
                        return
        except StopIteration as ended:
            result = ended.value
            with self._lock:
                alive = call in group.calls
                if alive:
                    group.calls.remove(call)
            if alive:
                call.stop_timer()
                call.waiter.complete(lambda: () if result is None else (result,))
        except OpError as error:
            self._end(call.group, group, error)
        except Exception as error:  # noqa: BLE001 (all members are told)
            why = InternalError(None, None, f"{type(error).__name__}: {error}")
            self._end(call.group, group, why)

    def _ran_out(self, group: _Group, call: Call) -> None:
        with self._lock:
            if call not in group.calls:
                return
            missing = "" if group.members else f"; of {group.size} members some never came"
        what = f"{call.member} has waited for {call.seconds:g} s (timeout_seconds){missing}"
        self._end(call.group, group, DeadlineExceededError(None, None, what))

    # Messages -------------------------------------------------------------------------------

    def _post(self, task: str, key: str, value: np.ndarray | None = None) -> None:
        sent = np.zeros(0, np.uint8) if value is None else value
        if task == self.task:
            self.deliver(task, key, np.array(sent))
            return
        assert self._post_to is not None
        self._post_to(task, key, sent)

    def deliver(self, sender: str, key: str, value: np.ndarray) -> None:
        """A message from the task ``sender``."""
        kind, _, rest = key.partition(" ")
        if kind == "data":
            self._received(sender, key, value)
        elif kind == "join":
            self._joined(sender, rest)
        elif kind == "leave":
            number, member = rest.split(" ", 1)
            with self._lock:
                self._forming.get(int(number), {}).pop(member, None)
        elif kind == "form":
            self._formed(rest, value)
        elif kind == "over":
            number, generation = rest.split(" ", 1)
            message = value.tobytes().decode(errors="replace")
            self._end_generation(int(number), generation, AbortedError(None, None, message))

    def _received(self, sender: str, key: str, value: np.ndarray) -> None:
        _, number, generation, _ = key.split(" ", 3)
        group = call = None
        with self._lock:
            group = self._groups.get(int(number))
            is_alive = group is not None and group.generation in ("", generation)
            is_alive = is_alive and generation not in self._over
            if group is not None and is_alive:
                call = group.expected.pop(key, None)
                if call is None:
                    group.arrived[key] = value
        if group is None or not is_alive:
            self._tell_over(sender, int(number), generation, "the group was formed anew meanwhile")
        elif call is not None:
            self._go_on(group, call, value)

    def _joined(self, sender: str, rest: str) -> None:
        number, size, member = rest.split(" ", 2)
        with self._lock:
            forming = self._forming.setdefault(int(number), {})
            forming[member] = sender
            if len(forming) < int(size):
                return
            del self._forming[int(number)]
            generation, tasks = secrets.token_hex(8), list(dict.fromkeys(forming.values()))
            self._told[int(number)] = generation, tasks
        # The order is one that every member of a cluster would expect: by job, task and device.
        members = sorted(forming, key=_natural)
        listed = np.frombuffer("\n".join(members).encode(), np.uint8)
        for task in tasks:
            try:
                self._post(task, f"form {number} {generation}", listed)
            except OpError as error:
                self._lost_by_leader(task, error.message)

    def _formed(self, rest: str, value: np.ndarray) -> None:
        number, generation = rest.split(" ", 1)
        members = tuple(value.tobytes().decode().split("\n"))
        with self._lock:
            group = self._groups.get(int(number))
            if group is not None and not group.generation:
                group.generation, group.members = generation, members
                begun = list(group.calls)
                for key in [k for k in group.arrived if k.split(" ", 3)[2] != generation]:
                    del group.arrived[key]
            else:
                group = None
        if group is None:  # who had joined from here has given up since
            for task in dict.fromkeys(map(_task_of, members)):
                why = f"a member on {self.task} has given up"
                self._tell_over(task, int(number), generation, why)
            return
        if generation in self._over:
            failed = AbortedError(None, None, "A collective has failed: a member has given up")
            self._end_generation(int(number), generation, failed)
            return
        for call in begun:
            self._go_on(group, call, None)

    # Ends -----------------------------------------------------------------------------------

    def lost(self, task: str, why: str) -> None:
        """A task cannot be reached any more."""
        with self._lock:
            for forming in self._forming.values():
                for member in [m for m, its in forming.items() if its == task]:
                    del forming[member]
            over = [
                (number, group)
                for number, group in self._groups.items()
                if any(_task_of(member) == task for member in group.members)
                or (task == self._leader and not group.members)
            ]
        for number, group in over:
            failed = UnavailableError(None, None, f"A collective has failed: {why}")
            self._end(number, group, failed)
        self._lost_by_leader(task, why)

    def _lost_by_leader(self, task: str, why: str) -> None:
        """Tells the others in the groups of ``task``: they may have lost it before they knew."""
        with self._lock:
            over = [(number, *told) for number, told in self._told.items() if task in told[1]]
            for number, _, _ in over:
                del self._told[number]
        for number, generation, tasks in over:
            for other in tasks:
                if other != task:
                    self._tell_over(other, number, generation, why)

    def abandon(self, error: Exception) -> None:
        """Fails all calls."""
        with self._lock:
            groups = list(self._groups.items())
        for number, group in groups:
            why = error if isinstance(error, OpError) else AbortedError(None, None, str(error))
            self._end(number, group, why)

    def _end_generation(self, number: int, generation: str, why: OpError) -> None:
        """Others say that this formation of the group is over; it may be known here only later."""
        with self._lock:
            self._remember(generation)
            group = self._groups.get(number)
            if group is None or group.generation != generation:
                return
        self._end(number, group, why, tell=False)

    def _remember(self, generation: str) -> None:
        self._over[generation] = None
        if len(self._over) > _REMEMBERED:
            del self._over[next(iter(self._over))]

    def _end(self, number: int, group: _Group, why: OpError, tell: bool = True) -> None:
        """The group is over: its calls fail, here and at the other members."""
        with self._lock:
            generation = group.generation  # the leader may tell it at any moment until here
            if generation:
                self._remember(generation)
            if self._groups.get(number) is not group:
                return
            del self._groups[number]
            calls, group.calls = group.calls, []
        for call in calls:
            call.stop_timer()
            call.waiter.fail(why)
        if not group.members:
            for member in group.joined:
                with contextlib.suppress(OpError):  # the leader is lost, and with it who joined
                    self._post(self._leader, f"leave {number} {member}")
        elif tell:
            tasks = dict.fromkeys(_task_of(member) for member in group.members)
            for task in tasks:
                if task != self.task:
                    self._tell_over(task, number, generation, why.message)

    def _tell_over(self, task: str, number: int, generation: str, why: str) -> None:
        message = np.frombuffer(f"A collective has failed: {why}".encode(), np.uint8)
        try:
            self._post(task, f"over {number} {generation}", message)
        except OpError:
            return  # it is lost, and will know by itself


def _data_key(call: Call, generation: str, receiver: int, key: str) -> str:
    return f"data {call.group} {generation} {call.instance}/{call.round}/{receiver}/{key}"


def _task_of(member: str) -> str:
    return member.rpartition("/")[0]


def _natural(member: str) -> list[Any]:
    """Sorts task 10 behind task 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", member)]
