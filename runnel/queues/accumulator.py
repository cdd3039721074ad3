"""Accumulators sum gradients; a step takes the sum when enough of them have come."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from runnel.graph.dtypes import DType
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.shapes import Dims, compatible_dims, format_dims
from runnel.queues.attempts import Attempts
from runnel.queues.waiter import Outputs, Waiter
from runnel.sorted_places import sorted_places

logger = logging.getLogger("runnel")


class Accumulator:
    """A sum of gradients of one step; ``dense`` and ``sparse`` ones differ in what a sum is.

    A gradient computed at an earlier step than the accumulator's own is stale and dropped. Taking
    the sum (or, if it ``averages``, the mean) moves the accumulator to the next step. ``dropped``
    counts the stale ones.
    """

    kind = "ConditionalAccumulator"

    def __init__(self, name: str, dtype: DType, dims: Dims, averages: bool) -> None:
        self.name = name
        self.dtype = dtype
        self.dims = dims
        self.averages = averages
        self.step = 0
        self.count = 0
        self.dropped = 0
        self._attempts = Attempts()

    # Operations -----------------------------------------------------------------------------

    def apply(self, step: int, *gradient: Any) -> None:
        """Adds a gradient that was computed at ``step``, unless it is stale."""
        self._check(*gradient)

        def change() -> None:
            if step >= self.step:
                self._add(*gradient)
                self.count += 1
            else:
                self.dropped += 1

        self._attempts.change(change)

    def take(self, required: int, waiter: Waiter) -> Any:
        """The sum or mean, once ``required`` gradients have come."""
        if required <= 0:
            raise InvalidArgumentError(
                None, None, f"Argument num_required must be positive, but is {required}"
            )

        def attempt() -> Outputs | None:
            if self.count < required:
                return None
            outputs = self._result()
            self.count = 0
            self.step += 1
            return outputs

        return self._attempts.make(attempt, waiter, "takers")

    def set_step(self, step: int) -> None:
        """Moves the accumulator to ``step``."""

        def change() -> None:
            if step < self.step:
                logger.warning(
                    "The accumulator %r goes back from step %d to %d", self.name, self.step, step
                )
            self.step = step

        self._attempts.change(change)

    def cancel(self, waiter: Waiter) -> bool:
        """Forgets ``waiter``; False if it has been told its result already."""
        return self._attempts.cancel(waiter)

    def abandon(self, error: Exception) -> None:
        """Fails everyone who waits."""
        self._attempts.abandon(error)

    # What a sum is --------------------------------------------------------------------------

    def _check(self, *gradient: Any) -> None:
        raise NotImplementedError

    def _add(self, *gradient: Any) -> None:
        raise NotImplementedError

    def _result(self) -> Outputs:
        raise NotImplementedError

    def _mismatch(self, shape: tuple[int, ...], dims: Dims) -> InvalidArgumentError:
        return InvalidArgumentError(
            None,
            None,
            f"Shape mismatch: the accumulator {self.name!r} expects {format_dims(dims)}, got "
            f"{format_dims(shape)}",
        )


class DenseAccumulator(Accumulator):
    """A sum of arrays."""

    def __init__(self, name: str, dtype: DType, dims: Dims, averages: bool) -> None:
        super().__init__(name, dtype, dims, averages)
        self._sum: Any = None

    def _check(self, *gradient: Any) -> None:
        if not compatible_dims(np.shape(gradient[0]), self.dims):
            raise self._mismatch(np.shape(gradient[0]), self.dims)

    def _add(self, *gradient: Any) -> None:
        (array,) = gradient
        if self.count == 0:
            # A copy of its own: it is added to in place, and the gradient may be the caller's.
            self._sum = np.array(array)
        elif np.shape(array) != self._sum.shape:
            raise self._mismatch(np.shape(array), self._sum.shape)
        else:
            self._sum += np.asarray(array)

    def _result(self) -> Outputs:
        total, self._sum = self._sum, None
        if self.averages:
            total = total / total.dtype.type(self.count)
        return (np.asarray(total, self.dtype.np_dtype),)


class SparseAccumulator(Accumulator):
    """A sum of rows; the mean of a row is over the gradients that had it.

    A gradient is its rows' indices, the rows, and the shape of the whole or None. What is taken has
    sorted indices, each once; the shape has the number of rows that the accumulator knows, or -1.
    """

    kind = "SparseConditionalAccumulator"

    def __init__(self, name: str, dtype: DType, dims: Dims, averages: bool) -> None:
        super().__init__(name, dtype, dims, averages)
        self._parts: list[tuple[Any, Any]] = []

    def _check(self, *gradient: Any) -> None:
        indices, values = (np.asarray(part) for part in gradient[:2])
        shape = gradient[2]
        if indices.ndim != 1:
            raise InvalidArgumentError(
                None, None, f"Input indices should be vector but received shape: {indices.shape}"
            )
        if values.ndim < 1 or len(values) != len(indices):
            raise InvalidArgumentError(
                None,
                None,
                "There must be a row of values for each index, but there are "
                f"{len(indices)} indices and values of shape {values.shape}",
            )
        dims = self.dims or ()
        # A shape of lower rank says nothing of what follows, be it of the whole or of a row.
        if shape is not None and not _begins_with(tuple(np.asarray(shape).tolist()), dims):
            raise self._mismatch(tuple(np.asarray(shape).tolist()), self.dims)
        if not _begins_with(values.shape, (None, *dims[1:]) if dims else ()):
            raise self._mismatch(values.shape, (None, *dims[1:]))
        if dims and dims[0] is not None and len(indices) and indices.max() >= dims[0]:
            raise InvalidArgumentError(
                None, None, f"Indices must be less than {dims[0]}, but are {indices.tolist()}"
            )

    def _add(self, *gradient: Any) -> None:
        indices, values = (np.asarray(part) for part in gradient[:2])
        if self._parts and self._parts[0][1].shape[1:] != values.shape[1:]:
            raise self._mismatch(values.shape, (len(values), *self._parts[0][1].shape[1:]))
        # Copies: they may be the caller's, or be given up by a step that goes on.
        self._parts.append((indices.copy(), values.copy()))

    def _result(self) -> Outputs:
        parts, self._parts = self._parts, []
        all_indices = np.concatenate([indices for indices, _ in parts])
        all_values = np.concatenate([values for _, values in parts])
        indices, order, starts, lengths = sorted_places(all_indices)
        values = all_values.take(order.take(starts), 0)
        several = np.flatnonzero(lengths > 1)
        if several.size:
            again = order[np.repeat(lengths > 1, lengths)]
            runs = np.cumsum(lengths[several]) - lengths[several]
            summed = all_values.take(again, 0)
            values[several] = np.add.reduceat(summed, runs, 0, summed.dtype)
        values += values.dtype.type(0)  # a sum begins with 0: -0 becomes 0
        if self.averages and len(parts) > 1 and several.size:
            # Rows of a run are in the order of their gradients.
            gradient = np.repeat(np.arange(len(parts)), [len(part) for part, _ in parts])[again]
            is_first = np.ones(len(gradient), bool)
            np.not_equal(gradient[1:], gradient[:-1], out=is_first[1:])
            is_first[runs] = True
            counts = np.add.reduceat(is_first, runs, dtype=all_values.dtype)
            values[several] = values[several] / counts.reshape(-1, *[1] * (values.ndim - 1))
        rows = self.dims[0] if self.dims else None
        shape = np.array([-1 if rows is None else rows, *values.shape[1:]], np.int64)
        kept = values.astype(self.dtype.np_dtype, copy=False)
        return indices.astype(np.int64, copy=False), kept, shape


def _begins_with(shape: tuple[int, ...], dims: tuple[int | None, ...]) -> bool:
    """True when the first dimensions of ``shape`` are those of ``dims`` that are known."""
    return len(shape) >= len(dims) and all(d in (None, s) for d, s in zip(dims, shape))
