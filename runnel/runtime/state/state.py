"""Variables at run time: cells in named containers."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import call
from typing import Any

import numpy as np

from runnel.graph.errors import CancelledError
from runnel.graph.operation import Operation
from runnel.passes.program.state_access import variable_name
from runnel.runtime.state.waiting import WaitingSteps

_cell_numbers = itertools.count()


class Cell:
    """One piece of mutable state: a variable's value, or the position of a random op's stream.

    ``writer`` is held by a step from the moment it reads a cell that it will replace until it
    has replaced it, so concurrent updates are not lost. Steps take several in order of
    ``number``, so they cannot deadlock.
    """

    __slots__ = ("value", "writer", "number", "changes_shape")

    def __init__(self) -> None:
        self.value: Any = None
        self.writer = threading.RLock()
        self.number = next(_cell_numbers)
        self.changes_shape = False
        """True once a step has been prepared that may store a value of another shape."""


class WriterLocks:
    """The writer locks of some cells, taken and released together.

    KeyboardInterrupt is raised between two instructions of Python code, never inside a built-in.
    So what must happen as a whole is one call of a built-in, here and in :func:`store_all`:

        release = locks.acquire()
        try:
            ...
        finally:
            deque(release, 0)
    """

    __slots__ = ("_acquire", "_release")

    def __init__(self, cells: Iterable[Cell], store: StateStore) -> None:
        ordered = sorted(set(cells), key=lambda cell: cell.number)
        self._acquire: list[Any] = [cell.writer.acquire for cell in ordered]
        self._release: list[Any] = [cell.writer.release for cell in ordered]
        if ordered:
            self._acquire.insert(0, partial(store.writing.append, None))
            self._release.insert(0, store.writing.pop)

    def acquire(self) -> Iterator[None]:
        """Waits for every lock (interrupted, it holds none); exhausting the result releases."""
        release = map(call, self._release)
        held: list[Any] = []
        try:
            held.extend(map(call, self._acquire))
        except BaseException:
            deque(itertools.islice(release, len(held)), 0)
            raise
        return release


def store_all(cells: Sequence[Cell], values: Sequence[Any]) -> None:
    """Gives each cell its value; an interrupt comes before or after, not between."""
    if len(cells) == 1:
        cells[0].value = values[0]
        return
    deque(map(setattr, cells, itertools.repeat("value"), values), 0)


class StateStore:
    """The containers of a session, each with its cells."""

    def __init__(self) -> None:
        # Held while a step takes the values that it starts from or stores new ones, so that a
        # step sees all the effects of another or none. Never held while a step computes.
        self.lock = threading.Lock()
        self._containers: dict[str, dict[str, Cell]] = {}
        self.writing: list[None] = []
        """As long as the number of steps that hold or wait for writer locks.

        They load under ``lock``: while it is held and nobody is here, all state is as it stands.
        """
        self.shape_changers = 0
        """Grows when another cell begins to change its shape from step to step."""
        self.closed = False
        """True when the session has ended: steps that still run stop."""
        self.waiting = WaitingSteps()
        """What steps share beside variables, and the steps that wait for it."""

    def cell(self, variable: Operation) -> Cell:
        """The cell of the variable that ``variable`` makes."""
        container, name = variable_name(variable)
        with self.lock:
            cells = self._containers.setdefault(container, {})
            if name not in cells:
                cells[name] = Cell()
            return cells[name]

    def note_shape_changes(self, cells: Sequence[Cell]) -> None:
        """Notes that the values of ``cells`` do not keep their shape."""
        with self.lock:
            for cell in cells:
                if not cell.changes_shape:
                    cell.changes_shape = True
                    self.shape_changers += 1

    def clear(self, containers: list[str] | None = None) -> None:
        """Forgets the values in the named containers, or in all."""
        with self.lock:
            for name, cells in self._containers.items():
                if containers is None or name in containers:
                    for cell in cells.values():
                        cell.value = None
        gone = CancelledError(None, None, "What this operation waits for was reset")
        self.waiting.resources.clear(containers, gone)


def as_numpy(value: Any) -> Any:
    """A value of either tier as a NumPy array (without a copy where possible).

    What is not an array (a stack, a TensorArray) is passed on as it is.
    """
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__array__"):
        return value
    return np.asarray(value)


def owned(value: Any) -> np.ndarray:
    """``value`` as an array that nobody else can change: what a cell keeps."""
    array = np.asarray(value)
    if array.base is not None or array.flags.writeable is False:
        array = array.copy()
    array.flags.writeable = False
    return array
