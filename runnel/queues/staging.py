"""Staging areas: tuples that wait between two steps, in order or under a key."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError, ResourceExhaustedError
from runnel.queues.attempts import Attempts
from runnel.queues.batches import taken_over
from runnel.queues.waiter import Outputs, Waiter


def _bytes(values: Sequence[Any]) -> int:
    return sum([getattr(np.asarray(value), "nbytes", 0) for value in values])


class _Bounded:
    """How much a staging area may hold; zeros: without bounds."""

    def __init__(self, name: str, capacity: int, memory_limit: int) -> None:
        self.name = name
        self.capacity = capacity
        self.memory_limit = memory_limit
        self.attempts = Attempts()
        self.bytes = 0

    def _check_size(self, size: int) -> None:
        if self.memory_limit and size > self.memory_limit:
            raise ResourceExhaustedError(
                None,
                None,
                f"Attempted to insert tensors with combined size of {size} bytes into the staging "
                f"area {self.name!r} with a memory limit of {self.memory_limit}",
            )

    def _has_room(self, present: int, size: int) -> bool:
        return (not self.capacity or present < self.capacity) and (
            not self.memory_limit or self.bytes + size <= self.memory_limit
        )

    def cancel(self, waiter: Waiter) -> bool:
        """Forgets ``waiter``; False if it has been told its result already."""
        return self.attempts.cancel(waiter)

    def abandon(self, error: Exception) -> None:
        """Fails everyone who waits."""
        self.attempts.abandon(error)


class StagingBuffer(_Bounded):
    """Tuples, first in, first out."""

    def __init__(self, name: str, capacity: int, memory_limit: int) -> None:
        super().__init__(name, capacity, memory_limit)
        self._tuples: deque[tuple[Any, ...]] = deque()

    def put(self, values: Sequence[Any], waiter: Waiter) -> Any:
        """Adds a tuple, when there is room."""
        kept = tuple(map(taken_over, values))
        size = _bytes(kept)
        self._check_size(size)

        def attempt() -> Outputs | None:
            if not self._has_room(len(self._tuples), size):
                return None
            self._tuples.append(kept)
            self.bytes += size
            return ()

        return self.attempts.make(attempt, waiter, "put")

    def get(self, waiter: Waiter) -> Any:
        """Takes the first tuple, when there is one."""

        def attempt() -> Outputs | None:
            if not self._tuples:
                return None
            values = self._tuples.popleft()
            self.bytes -= _bytes(values)
            return values

        return self.attempts.make(attempt, waiter, "get")

    def peek(self, index: int, waiter: Waiter) -> Any:
        """The tuple at ``index``, when there is one; it stays."""

        def attempt() -> Outputs | None:
            return self._tuples[index] if index < len(self._tuples) else None

        return self.attempts.make(attempt, waiter, None)

    def size(self) -> int:
        """How many tuples there are."""
        return len(self._tuples)

    def clear(self) -> None:
        """Forgets all tuples."""

        def change() -> None:
            self._tuples.clear()
            self.bytes = 0

        self.attempts.change(change)


class StagingMap(_Bounded):
    """Tuples under integer keys; the components of one may come separately.

    ``width`` is the number of components, 0 until the first of them come.
    """

    def __init__(self, name: str, capacity: int, memory_limit: int, ordered: bool) -> None:
        super().__init__(name, capacity, memory_limit)
        self.width = 0
        self.ordered = ordered
        self._complete: dict[int, list[Any]] = {}
        self._incomplete: dict[int, list[Any]] = {}

    def put(
        self, key: int, indices: Sequence[int], values: Sequence[Any], width: int, waiter: Waiter
    ) -> Any:
        """Adds components ``indices`` of the tuple under ``key``, when there is room."""
        self.width = width
        if len(indices) != len(values):
            raise InvalidArgumentError(
                None, None, f"There are {len(indices)} indices for {len(values)} values"
            )
        self._check_indices(indices)
        kept = [taken_over(value) for value in values]
        size = _bytes(kept)
        self._check_size(size)

        def attempt() -> Outputs | None:
            if key in self._complete:
                raise InvalidArgumentError(None, None, f"The tensors for key {key} are there")
            entry = self._incomplete.get(key)
            if entry is not None and any(entry[index] is not None for index in indices):
                raise InvalidArgumentError(
                    None, None, f"The tensor for an index of key {key} was already inserted"
                )
            complete = (sum(e is not None for e in entry or ()) + len(kept)) == self.width
            present = len(self._complete) if complete else -1
            if not self._has_room(present, size):
                return None
            if entry is None:
                entry = self._incomplete[key] = [None] * self.width
            for index, value in zip(indices, kept, strict=True):
                entry[index] = value
            self.bytes += size
            if complete:
                self._complete[key] = self._incomplete.pop(key)
            return ()

        return self.attempts.make(attempt, waiter, None)

    def get(self, key: int, indices: Sequence[int], waiter: Waiter) -> Any:
        """Takes components of the tuple under ``key``, when it is complete."""
        self._check_indices(indices)
        return self.attempts.make(lambda: self._take(key, indices), waiter, None)

    def get_any(self, indices: Sequence[int], waiter: Waiter) -> Any:
        """Takes components of some tuple (in an ordered map that of the smallest key)."""
        self._check_indices(indices)

        def attempt() -> Outputs | None:
            if not self._complete:
                return None
            key = min(self._complete) if self.ordered else next(iter(self._complete))
            values = self._take(key, indices)
            return None if values is None else (np.int64(key), *values)

        return self.attempts.make(attempt, waiter, "get any")

    def _take(self, key: int, indices: Sequence[int]) -> Outputs | None:
        entry = self._complete.get(key)
        if entry is None:
            return None
        values = self._components(key, entry, indices)
        for index in indices:
            entry[index] = None
        self.bytes -= _bytes(values)
        if all(value is None for value in entry):
            del self._complete[key]
        return values

    def peek(self, key: int, indices: Sequence[int], waiter: Waiter) -> Any:
        """Components of the tuple under ``key``, when it is complete; they stay."""
        self._check_indices(indices)

        def attempt() -> Outputs | None:
            entry = self._complete.get(key)
            return None if entry is None else self._components(key, entry, indices)

        return self.attempts.make(attempt, waiter, None)

    @staticmethod
    def _components(key: int, entry: list[Any], indices: Sequence[int]) -> Outputs:
        for index in indices:
            if entry[index] is None:
                raise InvalidArgumentError(
                    None, None, f"Tensor at index {index} for key {key} has already been removed."
                )
        return tuple([entry[index] for index in indices])

    def _check_indices(self, indices: Sequence[int]) -> None:
        for index in indices:
            if index < 0 or 0 < self.width <= index:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Index {index} is not in [0, {self.width}): the staging area {self.name!r} "
                    f"has {self.width} components",
                )

    def size(self) -> int:
        """How many tuples are complete."""
        return len(self._complete)

    def incomplete_size(self) -> int:
        """How many tuples lack components."""
        return len(self._incomplete)

    def clear(self) -> None:
        """Forgets all tuples."""

        def change() -> None:
            self._complete.clear()
            self._incomplete.clear()
            self.bytes = 0

        self.attempts.change(change)
