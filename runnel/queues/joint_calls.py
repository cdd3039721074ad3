"""Calls that all members make together, through something that they share, in one order.

A *fabric* joins processes beside the tasks' own connections (XLA's collectives). It holds whoever
enters one of its exchanges until all others have entered, and all must enter them in the same
order. So a member first offers its call to the leader. When the leader has an offer of every
member, it decides: go. Decisions are numbered, and every task carries them out in that order. A
member can give up an undecided call at any time; a decided one is carried out everywhere, even if
nobody wants the result any more.

Nothing here waits, or knows what a fabric is made of.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from runnel.graph.dtypes import as_dtype
from runnel.graph.errors import AbortedError, InvalidArgumentError, OpError, UnavailableError

Told = Callable[[Any, OpError | None], None]
"""Takes the result of a call, or why there is none."""
Post = Callable[[str, str, np.ndarray], None]
"""Sends an array under a key to the task of a name; must not wait."""

_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Joint:
    """What one member brings: ``reduce``, ``gather``, ``send`` or ``receive``, and its value."""

    kind: str
    value: Any = None
    merge: str = ""
    divides: bool = False

    def described(self) -> str:
        """What the others must know of it."""
        if self.value is None:
            return self.kind
        dtype = as_dtype(self.value.dtype).name
        shape = ",".join(map(str, self.value.shape))
        return f"{self.kind} {dtype} [{shape}] {self.merge} {int(self.divides)}"


@dataclass(frozen=True, slots=True)
class JointPlan:
    """What the members do together; every one of them reads the same out of the descriptions."""

    kind: str
    dtype: np.dtype
    shapes: tuple[tuple[int, ...], ...]
    """Of the members' values, by rank; of a broadcast, of the one that is sent."""
    merge: str = ""
    divides: bool = False
    root: int = 0
    """The rank of who sends."""


def agreed(descriptions: Sequence[str]) -> JointPlan:
    """The plan of members with these descriptions, by rank; an error where they do not fit."""
    kinds = [description.split(" ", 1)[0] for description in descriptions]
    if kinds.count("send") == 1 and kinds.count("receive") == len(kinds) - 1:
        root = kinds.index("send")
        _, dtype, shape, *_ = descriptions[root].split(" ")
        return JointPlan("broadcast", _numpy(dtype), (_dims(shape),), root=root)
    kind = kinds[0]
    parts = [description.split(" ") for description in descriptions]
    if kind in ("reduce", "gather") and kinds.count(kind) == len(kinds):
        _, dtype, _, merge, divides = parts[0]
        shapes = tuple(_dims(part[2]) for part in parts)
        first = 0 if kind == "reduce" else 1
        if all(
            [part[1], *part[3:]] == [dtype, merge, divides] and dims[first:] == shapes[0][first:]
            for part, dims in zip(parts, shapes, strict=True)
        ):
            return JointPlan(kind, _numpy(dtype), shapes, merge, divides == "1")
    raise InvalidArgumentError(
        None, None, f"The members of the group have different values: {'; '.join(descriptions)}"
    )


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(as_dtype(dtype).as_numpy_dtype)


def _dims(shape: str) -> tuple[int, ...]:
    return tuple(int(size) for size in shape[1:-1].split(",") if size)


class Fabric(Protocol):
    """What joins the processes."""

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks of all processes; the first is the leader of groups."""

    @property
    def broken(self) -> str:
        """Why nothing can go through it any more; "" while it can."""

    def fail(self, why: str) -> None:
        """A process is lost, and with it the fabric."""

    def place_of(self, device: str) -> str:
        """What tells a device such as ``GPU:0`` to the other processes; "" if it is outside.

        Places that can be joined differ only behind their last slash.
        """

    def is_best(self, place: str) -> bool:
        """True when the tasks' own connections would be slower there."""

    def held(self, value: Any) -> Any:
        """``value`` as something that nobody will change, and that :meth:`launch` takes."""

    def launch(
        self, places: Sequence[str], rank: int, plan: JointPlan, value: Any, told: Told
    ) -> None:
        """Carries out a plan after all that were launched before; must not wait."""


@dataclass(frozen=True, slots=True)
class _Offer:
    rank: int
    joint: Joint
    places: Sequence[str]
    told: Told


class JointCalls:
    """The offers of one task, and at the leader the decisions."""

    def __init__(self, fabric: Fabric, post: Post) -> None:
        self.fabric = fabric
        self._post = post
        # Guards the tables; not held while something is sent or told.
        self._lock = threading.Lock()
        self._offers: dict[tuple[str, str], _Offer] = {}
        self._arrived: dict[int, tuple[str, str, list[str]]] = {}
        self._next = 0
        self._carrying_out = False
        self._void: dict[str, None] = {}
        """Generations of groups that nothing will be decided of any more."""
        # At the leader.
        self._ready: dict[tuple[str, str], dict[int, str]] = {}
        self._decided = 0
        self._open: set[str] = set()

    def offer(
        self, generation: str, key: str, rank: int, joint: Joint, places: Sequence[str], told: Told
    ) -> None:
        """Tells the leader that this member is ready for the call ``key`` of its group."""
        broken = self.fabric.broken
        with self._lock:
            void = generation in self._void
            if not void and not broken:
                self._offers[generation, key] = _Offer(rank, joint, places, told)
        if broken:
            told(None, UnavailableError(None, None, f"A collective has failed: {broken}"))
        elif void:
            told(None, _given_up())
        else:
            described = np.frombuffer(joint.described().encode(), np.uint8)
            self._post(self.fabric.tasks[0], f"ready {generation} {key} {rank}", described)

    def deliver(self, kind: str, rest: str, value: np.ndarray) -> None:
        """A message of another task: ``ready``, ``go`` or ``void``."""
        text = value.tobytes().decode(errors="replace")
        if kind == "ready":
            generation, key, rank = rest.split(" ")
            self._is_ready(generation, key, int(rank), text)
        elif kind == "go":
            number, generation, key = rest.split(" ")
            self._has_come(int(number), (generation, key, text.split("\n")))
        elif kind == "void":
            number, generation = rest.split(" ")
            self._has_come(int(number), (generation, "", []))

    # The leader -----------------------------------------------------------------------------

    def open(self, generation: str) -> None:
        """At the leader: a group has been formed whose members go through the fabric."""
        with self._lock:
            self._open.add(generation)

    def _is_ready(self, generation: str, key: str, rank: int, description: str) -> None:
        with self._lock:
            if generation not in self._open:
                return
            ready = self._ready.setdefault((generation, key), {})
            ready[rank] = description
            if len(ready) < len(self.fabric.tasks):
                return
            del self._ready[generation, key]
            number, self._decided = self._decided, self._decided + 1
        descriptions = "\n".join(ready[rank] for rank in sorted(ready))
        self._announce(f"go {number} {generation} {key}", descriptions)

    def close(self, generation: str) -> None:
        """A group is over: if this is its leader, nothing more is decided of it."""
        with self._lock:
            if generation not in self._open:
                return
            self._open.remove(generation)
            for offered in [each for each in self._ready if each[0] == generation]:
                del self._ready[offered]
            number, self._decided = self._decided, self._decided + 1
        self._announce(f"void {number} {generation}", "")

    def _announce(self, key: str, text: str) -> None:
        for task in self.fabric.tasks:
            with contextlib.suppress(OpError):  # it is lost, and with it the fabric
                self._post(task, key, np.frombuffer(text.encode(), np.uint8))

    # Every task -----------------------------------------------------------------------------

    def _has_come(self, number: int, decision: tuple[str, str, list[str]]) -> None:
        """Carries out decisions in the order of their numbers, one thread at a time."""
        with self._lock:
            self._arrived[number] = decision
            if self._carrying_out:
                return
            self._carrying_out = True
        while True:
            with self._lock:
                found = self._arrived.pop(self._next, None)
                if found is None:
                    self._carrying_out = False
                    return
                self._next += 1
                generation, key, descriptions = found
                if not key:
                    self._void[generation] = None
                    if len(self._void) > _REMEMBERED:
                        del self._void[next(iter(self._void))]
                taken = [
                    self._offers.pop(each)
                    for each in list(self._offers)
                    if each == (generation, key) or (not key and each[0] == generation)
                ]
            for offer in taken:
                self._carry_out(offer, descriptions)

    def _carry_out(self, offer: _Offer, descriptions: list[str]) -> None:
        if not descriptions:
            offer.told(None, _given_up())
            return
        try:
            plan = agreed(descriptions)
        except OpError as error:
            offer.told(None, error)
            return
        self.fabric.launch(offer.places, offer.rank, plan, offer.joint.value, offer.told)


def _given_up() -> AbortedError:
    return AbortedError(None, None, "A collective has failed: a member has given up")
