"""Cells: the values of variables, the positions of random streams, and the locks of writers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, islice, repeat, takewhile
from operator import call
from typing import Any

import numpy as np

from runnel.mapped_array import has_own_file, mapped_copy, mapped_zeros, no_look
from runnel.ops.block_value import BlockValue
from runnel.passes.program.program import Node
from runnel.runtime.state.pack import Row
from runnel.runtime.state.step_context import StepContext

_LOOK_SECONDS = 0.02
"""For how long a step waits for a lock before it looks whether it may go on."""

_cell_numbers = count()


class Cell:
    """One piece of mutable state: a variable's value, or the position of a random op's stream.

    ``writer`` is held by a step from the moment it reads a cell that it will replace until it
    has replaced it, so concurrent updates are not lost. Steps take several in order of
    ``number``, so they cannot deadlock.
    """

    __slots__ = ("held", "writer", "number", "changes_shape", "by_rows", "folder")

    def __init__(self, folder: str = "") -> None:
        self.held: Any = None
        """The value; or, of one that is packed with others, where it is: a ``Row``, which tells its
        shape, type and size, and whether it is there. None before there is one. Who does not hold
        the lock of the state looks at this: a value may have to be taken out of its pack."""
        self.writer = threading.RLock()
        self.number = next(_cell_numbers)
        self.changes_shape = False
        """True once a step has been prepared that may store a value of another shape."""
        self.by_rows = False
        """True once it is known to be changed by rows, in place, by the interpreter."""
        self.folder = folder
        """Where its value is in a mapped file; "" for memory."""

    @property
    def value(self) -> Any:
        """The value; None before there is one. Read under the lock of the state."""
        held = self.held
        return held.value if type(held) is Row else held

    @value.setter
    def value(self, value: Any) -> None:
        self.held = value

    def owned(self, value: Any, look: Callable[[], None] = no_look) -> np.ndarray:
        """``value`` as an array that nobody else can change, where this cell keeps its values.

        A mapped one is made in a new file, so that a failure leaves the old value as it was;
        ``look``, which is called now and then, may be one.
        """
        if not self.folder:
            return owned(value)
        array: np.ndarray
        if isinstance(value, BlockValue):
            array = mapped_zeros(self.folder, value.shape, value.dtype)
            value.write(array, look)
        else:
            array = np.asarray(value)
            if not has_own_file(array) or not array.flags.writeable:
                array = mapped_copy(self.folder, array, look)
        array.flags.writeable = False
        return array


Undo = tuple[Cell, Any, Any]
"""A cell, what it held before something, and what that has left there."""


class WriterLocks:
    """The writer locks of some cells, taken and released together.

    KeyboardInterrupt is raised between two instructions of Python code, never inside a built-in.
    So what must happen as a whole is one call of a built-in, here and in :func:`store_all`:

        release = locks.acquire(context, node)
        try:
            ...
        finally:
            deque(release, 0)
    """

    __slots__ = ("_attempts", "_patient", "_release")

    def __init__(self, cells: Iterable[Cell], writing: list[None]) -> None:
        """``writing`` is as long as the number of steps that hold or wait for writer locks."""
        locks: list[Any] = [c.writer for c in sorted(set(cells), key=lambda cell: cell.number)]
        begin = partial(writing.__iadd__, (None,))  # which gives the list: something true
        self._attempts = [begin, *(partial(lock.acquire, False) for lock in locks)]
        self._patient = [begin, *(partial(lock.acquire, True, _LOOK_SECONDS) for lock in locks)]
        self._release: list[Any] = [writing.pop, *(lock.release for lock in locks)]

    def acquire(self, context: StepContext, node: Node) -> Iterator[None]:
        """Waits for every lock, as long as the step may run; exhausting the result releases.

        Interrupted or out of time, it holds none; an error names ``node``.
        """
        release = map(call, self._release)
        held: list[Any] = []
        try:
            held.extend(takewhile(bool, map(call, self._attempts)))
            while len(held) < len(self._release):
                context.require_time(node)
                held.extend(takewhile(bool, map(call, self._patient[len(held) :])))
        except BaseException:
            deque(islice(release, len(held)), 0)
            raise
        return release


def store_all(cells: Sequence[Cell], values: Sequence[Any]) -> None:
    """Gives each cell its value; an interrupt comes before or after, not between."""
    if len(cells) == 1:
        cells[0].held = values[0]
        return
    deque(map(setattr, cells, repeat("held"), values), 0)


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
