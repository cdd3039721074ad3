"""A barrier: elements whose components come separately, under a key, and leave when complete."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.graph.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from runnel.graph.shapes import Dims, compatible_dims, format_dims
from runnel.queues.batches import taken_over
from runnel.queues.elements import Prioritized
from runnel.queues.queue import Queue
from runnel.queues.waiter import Waiter

_FIRST = -(1 << 63)


class BarrierState:
    """Gathers components by key; complete elements leave in the order in which their keys came.

    Keys that came in one operation have the same place in that order.
    """

    def __init__(self, name: str, types: Sequence[DType], shapes: Sequence[Dims] | None) -> None:
        self.name = name
        self.types = tuple(types)
        self.shapes = None if shapes is None else tuple(shapes)
        self.is_closed = False
        # Held while components are put together; the queue of complete elements has its own.
        self._lock = threading.Lock()
        self._incomplete: dict[bytes, tuple[int, list[Any]]] = {}
        self._inserts = 0
        ready_shapes = [(), (), *(shapes if shapes is not None else [None] * len(self.types))]
        ready_types = [dtypes.int64, dtypes.string, *self.types]
        self._ready = Queue("Barrier", name, -1, ready_types, ready_shapes, Prioritized())
        self._nobody = Waiter()

    def insert_many(self, component: int, keys: Sequence[bytes], values: Any) -> None:
        """Adds a component of the elements under ``keys``."""
        if not 0 <= component < len(self.types):
            raise InvalidArgumentError(
                None,
                None,
                f"The component ID is out of range {component} > num_components "
                f"({len(self.types)})",
            )
        if np.shape(values)[:1] != (len(keys),):
            raise InvalidArgumentError(
                None,
                None,
                f"There must be a value for each of the {len(keys)} keys, but the values have "
                f"shape {format_dims(np.shape(values))}",
            )
        dims = None if self.shapes is None else self.shapes[component]
        if not compatible_dims(np.shape(values)[1:], dims):
            raise InvalidArgumentError(
                None,
                None,
                f"Shape mismatch: values of component {component} must have shape "
                f"{format_dims(dims)}, but have {format_dims(np.shape(values)[1:])}",
            )
        rows = taken_over(values)
        with self._lock:
            index = _FIRST + self._inserts
            if any(key not in self._incomplete for key in keys):
                self._inserts += 1
            for row, key in enumerate(keys):
                self._insert(index, component, key, rows[row])
            if self.is_closed and not self._incomplete:
                self._ready.close(True, self._nobody)

    def _insert(self, new_index: int, component: int, key: bytes, value: Any) -> None:
        entry = self._incomplete.get(key)
        if entry is None:
            if self.is_closed:
                raise CancelledError(
                    None,
                    None,
                    f"Barrier {self.name!r} is closed, but attempted to insert a brand new key: "
                    f"{key!r}. Pending inserts cancelled: {self._ready.is_closed}",
                )
            entry = self._incomplete[key] = (new_index, [None] * len(self.types))
        index, components = entry
        if components[component] is not None:
            raise InvalidArgumentError(
                None,
                None,
                f"Key {key!r} already has a value for component {component} in barrier "
                f"{self.name!r}",
            )
        components[component] = value
        if all(part is not None for part in components):
            del self._incomplete[key]
            self._ready.enqueue([np.int64(index), key, *components], self._nobody)

    def take_many(self, count: int, allow_small_batch: bool, waiter: Waiter) -> Any:
        """Takes ``count`` complete elements: their places, their keys and their components."""
        with self._lock:
            # Who takes fewer is not kept waiting for elements that may never be complete.
            coming = self._ready.size() + (0 if allow_small_batch else len(self._incomplete))
            if self.is_closed and coming < (min(count, 1) if allow_small_batch else count):
                raise OutOfRangeError(
                    None,
                    None,
                    f"Barrier {self.name!r} is closed and has insufficient elements (requested "
                    f"{count}, total size {coming})",
                )
        return self._ready.dequeue_many(count, waiter, up_to=allow_small_batch)

    def close(self, cancel_pending: bool) -> None:
        """Lets in no new keys; with ``cancel_pending``, drops the elements not yet complete."""
        with self._lock:
            if self.is_closed and not cancel_pending:
                raise CancelledError(None, None, f"Barrier {self.name!r} is already closed.")
            self.is_closed = True
            if cancel_pending:
                self._incomplete.clear()
            if self._incomplete:
                self._ready.end_soon()
            else:
                self._ready.close(True, self._nobody)

    def ready_size(self) -> int:
        """How many complete elements there are."""
        return self._ready.size()

    def incomplete_size(self) -> int:
        """How many keys lack a component."""
        return len(self._incomplete)

    def abandon(self, error: Exception) -> None:
        """Fails everyone who waits."""
        self._ready.abandon(error)
