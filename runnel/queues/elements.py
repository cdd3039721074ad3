"""The elements of a queue, in the order in which they leave it.

Elements come and go in *runs*: one element, or consecutive rows of a batch. A queue never splits a
batch that goes in whole and comes out whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import repeat
from typing import Any, NamedTuple, Protocol

SINGLE = -1


class Run(NamedTuple):
    """``length`` elements: rows of the arrays ``values`` from ``first`` on.

    A ``first`` of SINGLE means that ``values`` are one element's own.
    """

    values: tuple[Any, ...]
    first: int
    length: int

    def head(self, count: int) -> Run:
        """The first ``count`` elements."""
        return Run(self.values, self.first, count)

    def tail(self, count: int) -> Run:
        """What follows the first ``count`` elements."""
        return Run(self.values, self.first + count, self.length - count)

    def element(self) -> tuple[Any, ...]:
        """The components of the first element."""
        first = self.first
        if first == SINGLE:
            return self.values
        # A string of a row would be bytes, which have no shape.
        return tuple([v[first, ...] if v.dtype == object else v[first] for v in self.values])

    def singles(self) -> Iterable[Run]:
        """Each element as a run of its own."""
        if self.length == 1:
            return (self,)
        rows = range(self.first, self.first + self.length)
        # Three times as fast as calling Run for each, and a shuffle queue does it for all.
        return map(tuple.__new__, repeat(Run), zip(repeat(self.values), rows, repeat(1)))


class Draws(Protocol):
    """A source of random numbers of 32 bits, whose place can be kept."""

    def __call__(self) -> int:
        """The next number."""

    def state(self) -> list[int]:
        """Where it stands."""

    def go_on_from(self, state: list[int]) -> None:
        """Gives next what came next where :meth:`state` said so."""


class Elements(Protocol):
    """A store of elements; what distinguishes the kinds of queues."""

    size: int

    @property
    def draw(self) -> Draws | None:
        """What decides which element leaves next, if chance does."""

    def clear(self) -> None:
        """Forgets all elements."""

    def runs(self) -> list[Run]:
        """All elements: a store to which they are added in this order is like this one."""

    def add(self, run: Run) -> None:
        """Puts elements in."""

    def take(self, count: int) -> list[Run]:
        """Takes out ``count`` elements (there are as many)."""

    def restore(self, runs: list[Run]) -> None:
        """Puts back what was taken last, as if it had never been."""


class InOrder:
    """First in, first out."""

    __slots__ = ("_runs", "size")
    draw = None

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._runs: deque[Run] = deque()
        self.size = 0

    def runs(self) -> list[Run]:
        return list(self._runs)

    def add(self, run: Run) -> None:
        self._runs.append(run)
        self.size += run.length

    def take(self, count: int) -> list[Run]:
        runs = self._runs
        self.size -= count
        taken = []
        while count:
            run = runs.popleft()
            if run.length > count:
                runs.appendleft(run.tail(count))
                run = run.head(count)
            taken.append(run)
            count -= run.length
        return taken

    def restore(self, runs: list[Run]) -> None:
        self._runs.extendleft(reversed(runs))
        self.size += sum([run.length for run in runs])


class Shuffled:
    """In random order: each of the elements present is as likely to be the next.

    ``draw`` gives 32 random bits. The element drawn changes places with the last one, so both
    putting in and taking out take constant time.
    """

    __slots__ = ("_singles", "draw", "size")

    def __init__(self, draw: Draws) -> None:
        self.draw = draw
        self.clear()

    def clear(self) -> None:
        self._singles: list[Run] = []
        self.size = 0

    def runs(self) -> list[Run]:
        return list(self._singles)

    def add(self, run: Run) -> None:
        self._singles.extend(run.singles())
        self.size += run.length

    def take(self, count: int) -> list[Run]:
        singles, draw, size = self._singles, self.draw, self.size
        taken = []
        for _ in range(count):
            index = draw() % size
            size -= 1
            taken.append(singles[index])
            last = singles.pop()
            if index != size:
                singles[index] = last
        self.size = size
        return taken

    def restore(self, runs: list[Run]) -> None:
        self._singles.extend(runs)
        self.size = len(self._singles)


class Prioritized:
    """Smallest first component first; among equals, first in, first out."""

    __slots__ = ("_arrivals", "_heap", "_returns", "size")
    draw = None

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._heap: list[tuple[int, int, Run]] = []
        self._arrivals = 0
        self._returns = 0
        self.size = 0

    def runs(self) -> list[Run]:
        return [run for *_, run in sorted(self._heap)]

    def add(self, run: Run) -> None:
        for single in run.singles():
            priority = single.values[0]
            if single.first != SINGLE:
                priority = priority[single.first]
            heappush(self._heap, (int(priority), self._arrivals, single))
            self._arrivals += 1
        self.size += run.length

    def take(self, count: int) -> list[Run]:
        self.size -= count
        return [heappop(self._heap)[2] for _ in range(count)]

    def restore(self, runs: list[Run]) -> None:
        # Before everything of the same priority that has arrived since.
        self._returns -= len(runs)
        for number, run in enumerate(runs, self._returns):
            heappush(self._heap, (int(run.element()[0]), number, run))
        self.size += len(runs)
