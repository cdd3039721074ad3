"""Variables at run time: cells in named containers."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np

from runnel.graph.operation import Operation

_cell_numbers = itertools.count()


class Cell:
    """One piece of mutable state: a variable's value, or the position of a random op's stream.

    ``writer`` is held by a step from the moment it reads a cell that it will replace until it
    has replaced it, so concurrent updates are not lost. Steps take several in order of
    ``number``, so they cannot deadlock.
    """

    __slots__ = ("value", "writer", "number", "name")

    def __init__(self, name: str) -> None:
        self.value: Any = None
        self.writer = threading.RLock()
        self.number = next(_cell_numbers)
        self.name = name


class StateStore:
    """The containers of a session, each with its cells."""

    def __init__(self) -> None:
        # Held while a step takes the values that it starts from or stores new ones, so that a
        # step sees all the effects of another or none. Never held while a step computes.
        self.lock = threading.Lock()
        self._containers: dict[str, dict[str, Cell]] = {}

    def cell(self, variable: Operation) -> Cell:
        """The cell of the variable that ``variable`` makes."""
        container = variable.attrs.get("container") or ""
        name = variable.attrs.get("shared_name") or variable.name
        with self.lock:
            cells = self._containers.setdefault(container, {})
            if name not in cells:
                cells[name] = Cell(name)
            return cells[name]

    def clear(self, containers: list[str] | None = None) -> None:
        """Forgets the values in the named containers, or in all."""
        with self.lock:
            for name, cells in self._containers.items():
                if containers is None or name in containers:
                    for cell in cells.values():
                        cell.value = None


def as_numpy(value: Any) -> Any:
    """A value of either tier as a NumPy array (without a copy where possible)."""
    return value if isinstance(value, np.ndarray | np.generic) else np.asarray(value)


def owned(value: Any) -> np.ndarray:
    """``value`` as an array that nobody else can change: what a cell keeps."""
    array = np.asarray(value)
    if array.base is not None or array.flags.writeable is False:
        array = array.copy()
    array.flags.writeable = False
    return array
