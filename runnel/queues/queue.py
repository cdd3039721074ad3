"""A queue: producers wait for room, consumers wait for elements.

Both wait in order of arrival, and the queue looks only at the first of each list, so nobody
overtakes an operation on many elements. Such an operation takes or gives what it can, so it may ask
for more than the queue can hold; if it never completes, its elements go back.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from runnel.graph.dtypes import DType
from runnel.graph.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
from runnel.graph.shapes import Dims, compatible_dims, format_dims
from runnel.queues.batches import batch, padded_batch, taken_over
from runnel.queues.buffers import Buffers
from runnel.queues.elements import SINGLE, Elements, Run
from runnel.queues.waiter import WAITING, Outputs, Waiter


class _Request:
    """What a waiter waits for."""

    __slots__ = ("run", "wanted", "missing", "taken", "many", "up_to")

    def __init__(self) -> None:
        self.run: Run | None = None
        """What a producer has still to put in; None for a request to close."""
        self.wanted = 0
        self.missing = 0
        """How many of the elements that a consumer wants it has not got."""
        self.taken: list[Run] = []
        self.many = False
        self.up_to = False


class _Nobody(Waiter):
    """Stands in the list for a producer who need not wait: it is told nothing."""

    def complete(self, make: Callable[[], Outputs]) -> None:
        pass

    def fail(self, error: Exception) -> None:
        pass


class Contents(NamedTuple):
    """What is in a queue, and what decides how it goes on."""

    is_closed: bool
    draws: list[int] | None
    stored: list[Outputs]
    """The elements, in the order of :meth:`Elements.runs`."""
    pending: list[Outputs | None]
    """What producers have still to put in, in their order; None is a request to close."""


class Queue:
    """A queue of tuples of arrays.

    ``kind`` and ``name`` are for messages. A negative ``capacity`` is none. ``shapes`` are those
    of the components, or None where any will do. ``minimum`` elements stay when some are taken,
    until the queue is closed. With ``pads``, elements of different sizes are padded in a batch.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        capacity: int,
        types: Sequence[DType],
        shapes: Sequence[Dims] | None,
        elements: Elements,
        minimum: int = 0,
        pads: bool = False,
    ) -> None:
        self.kind = kind
        self.name = name
        self.capacity = capacity
        self.types = tuple(types)
        self.shapes = None if shapes is None else tuple(shapes)
        self.minimum = minimum
        self.pads = pads
        self.is_closed = self.is_ending = self._was_cut_off = False
        self._gone: Exception | None = None
        self._room = capacity if capacity >= 0 else 1 << 62
        self._elements = elements
        self._buffers = Buffers()
        # Held while an operation changes the queue, never while one waits or copies arrays.
        self._lock = threading.Lock()
        self._producers: OrderedDict[Waiter, _Request] = OrderedDict()
        self._consumers: OrderedDict[Waiter, _Request] = OrderedDict()
        # The waiter whose operation is being made, and what became of it: it need not be told.
        self._current: Waiter | None = None
        self._outcome: Callable[[], Outputs] | Exception | None = None

    # Operations -----------------------------------------------------------------------------

    def enqueue(self, values: Sequence[Any], waiter: Waiter) -> Any:
        """Puts one element in."""
        self._check_element(values)
        return self._enqueue(self._single(values), waiter)

    def enqueue_many(self, values: Sequence[Any], waiter: Waiter) -> Any:
        """Puts in one element for each row of ``values``."""
        self._check_components(values)
        shapes = [np.shape(value) for value in values]
        for i, shape in enumerate(shapes):
            if not shape:
                raise InvalidArgumentError(
                    None, None, f"Component {i} of a batch of elements must have rows, not be ()"
                )
            if shape[0] != shapes[0][0]:
                raise InvalidArgumentError(
                    None,
                    None,
                    "All input tensors must have the same size in the 0th dimension. Component "
                    f"{i} has {shape[0]}, and should have {shapes[0][0]}",
                )
            if self.shapes is not None and not compatible_dims(shape[1:], self.shapes[i]):
                dims = self.shapes[i]
                raise self._mismatch(i, None if dims is None else (shape[0], *dims), shape)
        count = shapes[0][0]
        if count == 0:
            return ()
        return self._enqueue(Run(self._taken_over(values), 0, count), waiter)

    def dequeue(self, waiter: Waiter) -> Any:
        """Takes one element out."""
        with self._lock:
            elements = self._elements
            if not self._consumers and not self._producers and self._gone is None:
                keep = 0 if self.is_closed else self.minimum
                if elements.size > keep:
                    return elements.take(1)[0].element()
            request = _Request()
            request.wanted = request.missing = 1
            self._consumers[waiter] = request
            self._advance(waiter)
            outcome = self._outcome
        return self._result(outcome, waiter)

    def dequeue_many(self, count: int, waiter: Waiter, up_to: bool = False) -> Any:
        """Takes out ``count`` elements as a batch; with ``up_to``, fewer if it ends before."""
        if count < 0:
            what = "DequeueUpTo" if up_to else "DequeueMany"
            raise InvalidArgumentError(None, None, f"{what} requested {count} < 0 elements")
        if self.shapes is None or (not self.pads and any([_unknown(d) for d in self.shapes])):
            raise InvalidArgumentError(
                None,
                None,
                f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have "
                f"specified shapes: give the queue {self.name!r} its shapes=, or take one element "
                "at a time",
            )
        if count == 0:
            return [
                np.zeros((0, *[d or 0 for d in dims or ()]), dtype.np_dtype)
                for dims, dtype in zip(self.shapes, self.types, strict=True)
            ]
        with self._lock:
            request = _Request()
            request.many, request.up_to = True, up_to
            request.wanted = request.missing = count
            self._consumers[waiter] = request
            self._advance(waiter)
            outcome = self._outcome
        return self._result(outcome, waiter)

    def close(self, cancel_pending: bool, waiter: Waiter) -> Any:
        """Closes the queue after the producers that wait now, or at once, failing them."""
        with self._lock:
            if cancel_pending:
                self._was_cut_off = self._was_cut_off or not self.is_closed
                self.is_closed = True
                for pending in list(self._producers):
                    del self._producers[pending]
                    pending.fail(CancelledError(None, None, "Enqueue operation was cancelled"))
                self._advance(waiter)
                return ()
            self._producers[waiter] = _Request()
            self._advance(waiter)
            outcome = self._outcome
        return self._result(outcome, waiter)

    def end_soon(self) -> None:
        """Gives who takes up to some elements what there is: more may come only because of that."""
        with self._lock:
            self.is_ending = True
            self._advance(None)

    def size(self) -> int:
        """How many elements there are."""
        return self._elements.size

    # What is in it --------------------------------------------------------------------------

    def let_producers_go(self) -> None:
        """Tells producers that wait for room that they are done.

        What they put in keeps its place among those who wait.
        """
        with self._lock:
            waiting = list(self._producers.items())
            self._producers.clear()
            for waiter, request in waiting:
                self._producers[_Nobody()] = request
                waiter.complete(_nothing)

    def contents(self) -> Contents:
        """What is in the queue now; what a consumer has taken that still waits for more is, too."""
        with self._lock:
            if self._was_cut_off:
                raise FailedPreconditionError(
                    None,
                    None,
                    f"{self.kind} {self.name!r} was closed and what was on its way into it was "
                    "given up, as when a coordinator stops: it cannot be saved any more. Save "
                    "before coord.request_stop()",
                )
            runs = [run for request in self._consumers.values() for run in request.taken]
            runs += self._elements.runs()
            pending: list[Outputs | None] = []
            for request in self._producers.values():
                pending += [None] if request.run is None else _elements_of([request.run])
            draw = self._elements.draw
            draws = None if draw is None else draw.state()
            return Contents(self.is_closed, draws, _elements_of(runs), pending)

    def replace(self, contents: Contents) -> None:
        """Has ``contents``, and nothing of what was in it before."""
        kept = [values for values in (*contents.stored, *contents.pending) if values is not None]
        for values in kept:
            self._check_element(values)
        with self._lock:
            self.is_closed, self._was_cut_off = contents.is_closed, False
            if self._elements.draw is not None and contents.draws is not None:
                self._elements.draw.go_on_from(contents.draws)
            self._elements.clear()
            for values in contents.stored:
                self._elements.add(self._single(values))
            for request in self._consumers.values():
                request.taken, request.missing = [], request.wanted
            waiting = [each for each in self._producers.items() if not isinstance(each[0], _Nobody)]
            self._producers.clear()
            for pending in contents.pending:
                later = self._producers[_Nobody()] = _Request()
                later.run = None if pending is None else self._single(pending)
            self._producers.update(waiting)
            self._advance(None)

    # Waiters --------------------------------------------------------------------------------

    def cancel(self, waiter: Waiter) -> bool:
        """Forgets ``waiter``; what it had taken goes back. False if it has its result."""
        with self._lock:
            if self._producers.pop(waiter, None) is None:
                request = self._consumers.pop(waiter, None)
                if request is None:
                    return False
                if request.taken:
                    self._elements.restore(request.taken)
            self._advance(None)
            return True

    def abandon(self, error: Exception) -> None:
        """Fails everyone who waits, and who comes later: the queue is gone.

        Who has found it before that must not take its end for that of the elements.
        """
        with self._lock:
            self.is_closed = True
            self._gone = error
            for waiting in (self._producers, self._consumers):
                while waiting:
                    waiting.popitem(last=False)[0].fail(error)

    @property
    def draws(self) -> bool:
        """Whether chance decides which element comes next."""
        return self._elements.draw is not None

    @property
    def waiting(self) -> tuple[int, int]:
        """How many producers and consumers wait."""
        return len(self._producers), len(self._consumers)

    # The machine ----------------------------------------------------------------------------

    def _enqueue(self, run: Run, waiter: Waiter) -> Any:
        with self._lock:
            elements = self._elements
            if not self._producers and not self.is_closed:
                if elements.size + run.length <= self._room:
                    elements.add(run)
                    if self._consumers:
                        self._advance(None)
                    return ()
            request = _Request()
            request.run = run
            self._producers[waiter] = request
            self._advance(waiter)
            outcome = self._outcome
        return self._result(outcome, waiter)

    def _result(self, outcome: Callable[[], Outputs] | Exception | None, waiter: Waiter) -> Any:
        """What an operation returns: its outputs, an error, or that it waits."""
        if outcome is None:
            waiter.place = self
            return WAITING
        if isinstance(outcome, Exception):
            raise outcome
        return outcome()

    def _advance(self, current: Waiter | None) -> None:
        """Lets the first of each list go on for as long as one of them can."""
        self._current, self._outcome = current, None
        producers, consumers = self._producers, self._consumers
        progress = True
        while progress:
            progress = False
            while producers:
                waiter, request = next(iter(producers.items()))
                before = self._elements.size
                outcome = self._try_to_produce(request)
                progress = progress or self._elements.size != before
                if outcome is None:
                    break
                progress = True
                del producers[waiter]
                self._tell(waiter, outcome)
            while consumers:
                waiter, request = next(iter(consumers.items()))
                before = self._elements.size
                outcome = self._try_to_consume(request)
                progress = progress or self._elements.size != before
                if outcome is None:
                    break
                progress = True
                del consumers[waiter]
                self._tell(waiter, outcome)
        self._current = None

    def _tell(self, waiter: Waiter, outcome: Callable[[], Outputs] | Exception) -> None:
        if waiter is self._current:
            self._outcome = outcome
        elif isinstance(outcome, Exception):
            waiter.fail(outcome)
        else:
            waiter.complete(outcome)

    def _try_to_produce(self, request: _Request) -> Callable[[], Outputs] | Exception | None:
        run = request.run
        if self._gone is not None:
            return self._gone
        if self.is_closed:
            state = "is already closed" if run is None else "is closed"
            return CancelledError(None, None, f"{self.kind} {self.name!r} {state}.")
        if run is None:
            self.is_closed = True
            return _nothing
        room = self._room - self._elements.size
        if room >= run.length:
            self._elements.add(run)
            return _nothing
        if room > 0:
            self._elements.add(run.head(room))
            request.run = run.tail(room)
        return None

    def _try_to_consume(self, request: _Request) -> Callable[[], Outputs] | Exception | None:
        if self._gone is not None:
            return self._gone
        elements = self._elements
        available = elements.size
        if not self.is_closed:
            available -= self.minimum
        elif available < request.missing:
            if request.taken:
                elements.restore(request.taken)
                request.taken = []
            request.missing = available = elements.size
            if available == 0 or not request.up_to:
                return OutOfRangeError(
                    None,
                    None,
                    f"{self.kind} {self.name!r} is closed and has insufficient elements "
                    f"(requested {request.wanted}, current size {elements.size})",
                )
        count = min(available, request.missing)
        if count > 0:
            request.taken += elements.take(count)
            request.missing -= count
        if request.missing and not (self.is_ending and request.up_to and request.taken):
            return None
        runs = request.taken
        if not request.many:
            return runs[0].element
        return lambda: self._batch(runs)

    def _batch(self, runs: list[Run]) -> Outputs:
        stack = padded_batch if self.pads else batch
        return [stack(runs, i, dtype.np_dtype) for i, dtype in enumerate(self.types)]

    def _single(self, values: Sequence[Any]) -> Run:
        return Run(self._taken_over(values), SINGLE, 1)

    def _taken_over(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([taken_over(value, self._buffers) for value in values])

    # Mistakes -------------------------------------------------------------------------------

    def _check_element(self, values: Sequence[Any]) -> None:
        self._check_components(values)
        if self.shapes is not None:
            for i, (value, dims) in enumerate(zip(values, self.shapes, strict=True)):
                if np.shape(value) != dims and not compatible_dims(np.shape(value), dims):
                    raise self._mismatch(i, dims, np.shape(value))

    def _check_components(self, values: Sequence[Any]) -> None:
        if len(values) != len(self.types):
            raise InvalidArgumentError(
                None,
                None,
                f"Wrong number of components in tuple. Expected {len(self.types)}, "
                f"got {len(values)}",
            )

    @staticmethod
    def _mismatch(component: int, expected: Dims, given: tuple[int, ...]) -> InvalidArgumentError:
        return InvalidArgumentError(
            None,
            None,
            f"Shape mismatch in tuple component {component}. Expected {format_dims(expected)}, "
            f"got {format_dims(given)}",
        )


def _unknown(dims: Dims) -> bool:
    return dims is None or None in dims


def _elements_of(runs: Sequence[Run]) -> list[Outputs]:
    return [single.element() for run in runs for single in run.singles()]


def _nothing() -> Outputs:
    return ()
