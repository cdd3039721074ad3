"""Collectives: members on several tasks exchange values, and each gets the same result.

The leader of a *group*, a task that all know, finds out who takes part: members join, and when the
group is complete, the leader tells each who they are. From then on the n-th call of an instance at
one member belongs to the n-th at every other.

Two members give each other their values. Among more, a large value goes around a ring in as many
pieces as there are members, and each member adds its own: it sends and receives twice the size of
the value, however many members there are. Every member gets the same bits. If a fabric joins the
processes of all members, they exchange through that instead (``joint_calls.py``).

A call that fails at one member fails at all, and the group is over; the next calls form it anew.
Nothing here waits: a call is a generator that asks for a message by its key, and continues on the
thread that brings it.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from typing import Any

import numpy as np

from runnel.graph.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from runnel.queues.batches import taken_over
from runnel.queues.buffers import Buffers
from runnel.queues.collective_call import Call, CollectiveGroup, data_key, natural, task_of
from runnel.queues.joint_calls import Fabric, JointCalls, Post
from runnel.queues.waiter import WAITING, Waiter

_REMEMBERED = 256
_FAILED = "A collective has failed"


class Collectives:
    """What one task knows of the groups that its devices are in; the leader's part, too.

    Keys of messages begin with what they are: ``join`` or ``leave`` the group that is formed,
    ``form``, ``data``, ``over``; ``ready``, ``go``, ``void`` for calls that go through a fabric.
    """

    def __init__(self) -> None:
        self.task = ""
        self.buffers = Buffers()
        """Memory for results."""
        self._leader = ""
        self._post_to: Post | None = None
        # Guards the tables; not held while values are added up or sent.
        self._lock = threading.Lock()
        self._groups: dict[int, CollectiveGroup] = {}
        self._forming: dict[int, dict[str, tuple[str, str]]] = {}
        """At the leader: the members that have joined, their tasks and places in the fabric."""
        self._told: dict[int, tuple[str, list[str]]] = {}
        """At the leader: the last generation of each group, and the tasks that were told of it."""
        self._over: dict[str, str] = {}
        """The last generations that are over, and why: messages of them may still come."""
        self._joint: JointCalls | None = None

    def connect(self, task: str, leader: str, post: Post, fabric: Fabric | None = None) -> None:
        """Makes this a task of a cluster; ``fabric`` joins it with the others, the leader first."""
        self.task, self._leader, self._post_to = task, leader, post
        self._joint = None if fabric is None else JointCalls(fabric, self._post)

    def held(self, value: Any, hint: str) -> Any:
        """``value`` as something that nobody will change, for a call with this hint."""
        if self._joint is not None and hint != "ring":
            return self._joint.fabric.held(value)
        return np.asarray(taken_over(value))

    # Calls ----------------------------------------------------------------------------------

    def start(self, call: Call) -> Any:
        """Begins a call; its waiter is told the result."""
        call.member = f"{self.task}/{call.member}"
        call.waiter.place = self
        with self._lock:
            group = self._groups.get(call.group)
            if group is None:
                group = self._groups[call.group] = CollectiveGroup(call.size)
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
                place = self._place_of(call.member)
                self._post(self._leader, f"join {call.group} {call.size} {call.member}", place)
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

    def _place_of(self, member: str) -> np.ndarray:
        place = ""
        if self._joint is not None and not self._joint.fabric.broken:
            place = self._joint.fabric.place_of(member.rpartition("/")[2])
        return np.frombuffer(place.encode(), np.uint8)

    def _go_on(self, group: CollectiveGroup, call: Call, message: np.ndarray | None) -> None:
        """Drives a call until it lacks a message, or has its result."""
        try:
            rank = group.members.index(call.member)
            if call.exchange is None and self._is_joint(group, call, rank):
                self._offer(group, call, rank)
                return
            if call.exchange is None:

                def send(to: int, key: str, value: np.ndarray) -> None:
                    name = data_key(call, group.generation, to, key)
                    self._post(task_of(group.members[to]), name, value)

                call.exchange = call.begin(rank, group.size, send)
            while True:
                name = data_key(call, group.generation, rank, call.exchange.send(message))
                with self._lock:
                    message = group.arrived.pop(name, None)
                    if message is None:
                        group.expected[name] = call
                        return
        except StopIteration as ended:
            self._finish(group, call, ended.value)
        except OpError as error:
            self._end(call.group, group, error)
        except Exception as error:  # noqa: BLE001 (all members are told)
            why = InternalError(None, None, f"{type(error).__name__}: {error}")
            self._end(call.group, group, why)

    def _finish(self, group: CollectiveGroup, call: Call, result: Any) -> None:
        with self._lock:
            alive = call in group.calls
            if alive:
                group.calls.remove(call)
        if alive:
            call.stop_timer()
            call.waiter.complete(lambda: () if result is None else (result,))

    def _is_joint(self, group: CollectiveGroup, call: Call, rank: int) -> bool:
        """Whether a call goes through the fabric; every member of the group finds the same."""
        if call.hint == "nccl" and not group.places:
            raise FailedPreconditionError(None, None, self._why_not_joint(group))
        if call.hint == "ring" or call.joint is None or not group.places or self._joint is None:
            return False
        return call.hint == "nccl" or self._joint.fabric.is_best(group.places[rank])

    def _offer(self, group: CollectiveGroup, call: Call, rank: int) -> None:
        def told(result: Any, error: OpError | None) -> None:
            if error is None:
                self._finish(group, call, result)
            else:
                self._end(call.group, group, error)

        assert self._joint is not None
        assert call.joint is not None
        key = f"{call.group}/{call.instance}/{call.round}"
        self._joint.offer(group.generation, key, rank, call.joint, group.places, told)

    def _why_not_joint(self, group: CollectiveGroup) -> str:
        why = "the members are not one device of each task whose server was started with it"
        if self._joint is None:
            why = f"{self.task} was started without it"
        elif self._joint.fabric.broken:
            why = self._joint.fabric.broken
        return (
            f"communication_hint='nccl' asks for XLA's collectives among {', '.join(group.members)}"
            f", but {why}. Give every task's Server a config with experimental.collective_nccl = "
            "True; communication_hint='auto' does without where it must"
        )

    def _ran_out(self, group: CollectiveGroup, call: Call) -> None:
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
            self._joined(sender, rest, value.tobytes().decode())
        elif kind == "leave":
            number, member = rest.split(" ", 1)
            with self._lock:
                self._forming.get(int(number), {}).pop(member, None)
        elif kind == "form":
            self._formed(rest, value)
        elif kind in ("ready", "go", "void"):
            if self._joint is not None:
                self._joint.deliver(kind, rest, value)
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

    def _joined(self, sender: str, rest: str, place: str) -> None:
        number, size, member = rest.split(" ", 2)
        with self._lock:
            forming = self._forming.setdefault(int(number), {})
            forming[member] = sender, place
            if len(forming) < int(size):
                return
            del self._forming[int(number)]
            tasks = list(dict.fromkeys(task for task, _ in forming.values()))
            generation = secrets.token_hex(8)
            self._told[int(number)] = generation, tasks
        # The order is one that every member of a cluster would expect: by job, task and device.
        members = sorted(forming, key=natural)
        places = [forming[member][1] for member in members]
        if self._are_joined(tasks, places) and self._joint is not None:
            self._joint.open(generation)
        else:
            places = []
        lines = "\n\n".join("\n".join(names) for names in (members, places))
        listed = np.frombuffer(lines.encode(), np.uint8)
        for task in tasks:
            try:
                self._post(task, f"form {number} {generation}", listed)
            except OpError as error:
                self._lost_by_leader(task, error.message)

    def _are_joined(self, tasks: list[str], places: list[str]) -> bool:
        """True when members at these places are one of each task of one fabric."""
        if self._joint is None or len({place.rpartition("/")[0] for place in places}) > 1:
            return False
        fabric = self._joint.fabric
        return all(places) and not fabric.broken and len(places) == len(tasks) == len(fabric.tasks)

    def _formed(self, rest: str, value: np.ndarray) -> None:
        number, generation = rest.split(" ", 1)
        lines = value.tobytes().decode().split("\n\n")
        members, places = (tuple(part.split("\n")) if part else () for part in lines)
        with self._lock:
            group = self._groups.get(int(number))
            if group is not None and not group.generation:
                group.generation, group.members, group.places = generation, members, places
                begun = list(group.calls)
                for key in [k for k in group.arrived if k.split(" ", 3)[2] != generation]:
                    del group.arrived[key]
            else:
                group = None
        if group is None:  # who had joined from here has given up since
            for task in dict.fromkeys(map(task_of, members)):
                why = f"a member on {self.task} has given up"
                self._tell_over(task, int(number), generation, why)
            return
        failed = self._over.get(generation)
        if failed is not None:
            self._end_generation(int(number), generation, AbortedError(None, None, failed))
            return
        for call in begun:
            self._go_on(group, call, None)

    # Ends -----------------------------------------------------------------------------------

    def lost(self, task: str, why: str) -> None:
        """A task cannot be reached any more."""
        if self._joint is not None and task in self._joint.fabric.tasks:
            self._joint.fabric.fail(why)
            why = self._joint.fabric.broken
        with self._lock:
            for forming in self._forming.values():
                for member in [m for m, its in forming.items() if its[0] == task]:
                    del forming[member]
            over = [
                (number, group)
                for number, group in self._groups.items()
                if any(task_of(member) == task for member in group.members)
                or (task == self._leader and not group.members)
            ]
        for number, group in over:
            failed = UnavailableError(None, None, f"{_FAILED}: {why}")
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
            self._remember(generation, why)
            group = self._groups.get(number)
            known = group is not None and group.generation == generation
        if group is not None and known:
            self._end(number, group, why, tell=False)
        elif self._joint is not None:
            self._joint.close(generation)

    def _remember(self, generation: str, why: OpError) -> None:
        self._over.setdefault(generation, why.message)
        if len(self._over) > _REMEMBERED:
            del self._over[next(iter(self._over))]

    def _end(self, number: int, group: CollectiveGroup, why: OpError, tell: bool = True) -> None:
        """The group is over: its calls fail, here and at the other members."""
        with self._lock:
            generation = group.generation  # the leader may tell it at any moment until here
            if generation:
                self._remember(generation, why)
            if self._groups.get(number) is not group:
                return
            del self._groups[number]
            calls, group.calls = group.calls, []
        for call in calls:
            call.stop_timer()
            call.waiter.fail(why)
        if self._joint is not None:
            self._joint.close(generation)
        if not group.members:
            for member in group.joined:
                with contextlib.suppress(OpError):  # the leader is lost, and with it who joined
                    self._post(self._leader, f"leave {number} {member}")
        elif tell:
            tasks = dict.fromkeys(task_of(member) for member in group.members)
            for task in tasks:
                if task != self.task:
                    self._tell_over(task, number, generation, why.message)

    def _tell_over(self, task: str, number: int, generation: str, why: str) -> None:
        told = why if why.startswith(_FAILED) else f"{_FAILED}: {why}"
        message = np.frombuffer(told.encode(), np.uint8)
        try:
            self._post(task, f"over {number} {generation}", message)
        except OpError:
            return  # it is lost, and will know by itself
