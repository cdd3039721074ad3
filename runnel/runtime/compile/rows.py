"""Values of a trace that are rows of one array: the results or inputs of a repetition's blocks.

A row is taken out of its array only for a user that needs it alone. A user of all rows in their
order, a repetition or an operation that joins them, takes them from the array as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.passes.program.program import Node

_FEWEST = 4
"""Rows that are worth being taken together."""


class Total:
    """The sum of what blocks have given, in place of the rows of an array that only it needs."""

    __slots__ = ("sum",)

    def __init__(self, total: Any) -> None:
        self.sum = total

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the array."""
        return (0, *self.sum.shape)

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self.sum.dtype


class TracedRow:
    """Row ``index`` of ``stack``, a traced array or the total of one."""

    __slots__ = ("stack", "index", "_value")

    def __init__(self, stack: Any, index: int) -> None:
        self.stack = stack
        self.index = index
        self._value: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the row."""
        return self.stack.shape[1:]

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self.stack.dtype

    def value(self) -> Any:
        """The row, taken out."""
        if self._value is None:
            self._value = self.stack[self.index]
        return self._value


@dataclass(frozen=True, slots=True, eq=False)
class TracedRows:
    """``count`` rows of ``stack``: ``first`` and each the next, or with ``step`` -1 the one before,
    and so on."""

    stack: Any
    first: int
    step: int
    count: int

    def at(self, number: Any) -> Any:
        """A row by its number, which may be traced."""
        from jax import lax

        index = self.first + self.step * number
        return lax.dynamic_index_in_dim(self.stack, index, keepdims=False)

    def array(self) -> Any:
        """All of them."""
        last = self.first + self.step * (self.count - 1)
        low, high = min(self.first, last), max(self.first, last)
        stack = self.stack
        if (low, high) != (0, stack.shape[0] - 1):
            stack = stack[low : high + 1]
        return stack[:: self.step] if self.step != 1 else stack


def is_known(value: Any) -> bool:
    """True for what has a value, an array of NumPy, while the segment is traced."""
    return isinstance(value, np.ndarray | np.generic)


def taken_out(values: list[Any]) -> list[Any]:
    """``values``, with arrays in place of rows."""
    return [value.value() if type(value) is TracedRow else value for value in values]


def together(values: Sequence[Any]) -> TracedRows:
    """``values``, arrays of one shape and type, as rows of one array."""
    import jax.numpy as jnp

    pieces = _pieces(values)
    if len(pieces) == 1 and isinstance(pieces[0], TracedRows):
        return pieces[0]
    arrays = [p.array() if isinstance(p, TracedRows) else _stacked(p) for p in pieces]
    stack = jnp.concatenate(arrays) if len(arrays) > 1 else arrays[0]
    return TracedRows(stack, 0, 1, len(values))


def _stacked(values: list[Any]) -> Any:
    import jax.numpy as jnp

    if all(map(is_known, values)):
        return jnp.asarray(np.stack(values))
    return jnp.stack(taken_out(values))


def _pieces(values: Sequence[Any]) -> list[TracedRows | list[Any]]:
    """``values`` as rows that follow one another in an array, and lists of others."""
    pieces: list[TracedRows | list[Any]] = []
    for value in values:
        last = pieces[-1] if pieces else None
        if type(value) is not TracedRow:
            if isinstance(last, list):
                last.append(value)
            else:
                pieces.append([value])
            continue
        if isinstance(last, TracedRows) and last.stack is value.stack:
            step = value.index - (last.first + last.step * (last.count - 1))
            if step == last.step or (last.count == 1 and step in (1, -1)):
                pieces[-1] = TracedRows(last.stack, last.first, step, last.count + 1)
                continue
        pieces.append(TracedRows(value.stack, value.index, 1, 1))
    return pieces


def unpacked(node: Node, values: list[Any]) -> list[TracedRow] | None:
    """What ``node`` gives, as rows; None where it does not take an array apart."""
    import jax.numpy as jnp

    if node.op_def.name != "Unpack" or len(node.outputs) < _FEWEST:
        return None
    (array,) = taken_out(values)
    if not hasattr(array, "aval"):
        return None
    stack = jnp.moveaxis(array, node.attrs["axis"], 0)
    return [TracedRow(stack, index) for index in range(stack.shape[0])]


def collected(node: Node, values: list[Any]) -> Any:
    """What ``node`` makes of rows that it puts together; None where it does something else."""
    name = node.op_def.name
    if name not in ("Pack", "ConcatV2", "AddN"):
        return None
    if sum(type(value) is TracedRow for value in values) < _FEWEST:
        return None
    import jax.numpy as jnp

    parts = values[:-1] if name == "ConcatV2" else values
    if len({(np.shape(p), p.dtype) for p in parts}) > 1:
        return None
    if name == "AddN":
        return _total(parts)
    stack = together(parts).array()
    if name == "Pack":
        return jnp.moveaxis(stack, 0, node.attrs["axis"])
    if not is_known(values[-1]):
        return None
    shape = list(np.shape(parts[0]))
    axis = int(values[-1]) % len(shape)
    shape[axis] *= len(parts)
    return jnp.moveaxis(stack, 0, axis).reshape(shape)


def _total(values: list[Any]) -> Any:
    import jax.numpy as jnp

    # The rows of a total are all here, each once, in whatever order.
    totals = {
        id(value.stack): value.stack.sum
        for value in values
        if type(value) is TracedRow and isinstance(value.stack, Total)
    }
    terms: list[Any] = list(totals.values())
    rest = [v for v in values if not (type(v) is TracedRow and isinstance(v.stack, Total))]
    for piece in _pieces(rest):
        if not isinstance(piece, TracedRows):
            terms += piece
        else:
            terms.append(jnp.sum(piece.array(), 0, dtype=piece.stack.dtype))
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
