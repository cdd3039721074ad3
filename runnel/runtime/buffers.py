"""Stacks and TensorArrays in compiled code: buffers of fixed size, passed on from use to use.

While a segment is traced, a handle is an object of Python and what it holds is in :class:`Effects`.
A loop carries the buffers that its body changes, a conditional hands them out of both branches
(``runnel.runtime.structured_trace``). Their sizes are known then: a stack has room for as many
elements as the loops around its pushes have iterations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from runnel.graph.shapes import Dims

_ZERO = np.int32(0)
_SMALL = 1 << 18
"""Bytes up to which the allocator keeps what is given back to it."""


class NotCompilable(Exception):
    """These shapes, or this use of a stack or an array, have no compiled form: they run anyway."""


class StackHandle:
    """A stack, while it is traced."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


class ArrayHandle:
    """A TensorArray, while it is traced; ``sums`` for one that adds up gradients."""

    def __init__(
        self,
        size: int,
        dtype: Any,
        dims: Dims,
        clears: bool,
        sums: bool = False,
        alike: bool = False,
    ) -> None:
        self.size = size
        self.dtype = dtype
        self.dims = dims
        self.clears = clears
        self.sums = sums
        self.alike = alike
        """True when elements that were not written are zeros in the shape of the others."""
        self.given = False
        """True when its elements are an argument of the segment, as it came."""
        self.gradients: dict[str, ArrayHandle] = {}


Handle = StackHandle | ArrayHandle


class StackContent:
    """The elements of a stack are the first ``count`` of ``buffer``.

    There are at least ``least`` and at most ``bound`` here. Where every element is the same array
    of NumPy (a shape, say), that is ``known`` and there is no buffer.
    """

    __slots__ = ("buffer", "count", "bound", "least", "known")

    def __init__(
        self,
        buffer: Any = None,
        count: Any = _ZERO,
        bound: int = 0,
        least: int = 0,
        known: Any = None,
    ) -> None:
        self.buffer = buffer
        self.count = count
        self.bound = bound
        self.least = least
        self.known = known

    @property
    def arrays(self) -> list[Any]:
        return [self.count] if self.buffer is None else [self.count, self.buffer]

    def with_arrays(self, arrays: list[Any]) -> StackContent:
        count, *buffer = arrays
        made = StackContent(None, count, self.bound, self.least, self.known)
        made.buffer = buffer[0] if buffer else None
        return made

    def moved(self, by: int, buffer: Any) -> StackContent:
        """With an element more or less, in ``buffer``."""
        bound = self.bound + max(0, by)
        return StackContent(buffer, self.count + by, bound, self.least + by, self.known)

    def with_room(self, room: int, element: Any) -> StackContent:
        """The same elements, in a buffer for at least ``room`` like ``element``."""
        import jax.numpy as jnp

        if self.buffer is None:
            buffer = jnp.zeros((room, *element.shape), element.dtype)
        elif self.buffer.shape[0] < room:
            missing = (room - self.buffer.shape[0], *self.buffer.shape[1:])
            buffer = jnp.concatenate([self.buffer, jnp.zeros(missing, self.buffer.dtype)])
        else:
            buffer = self.buffer
        return StackContent(buffer, self.count, self.bound, self.least)

    def knowing(self, element: Any) -> StackContent:
        """The same, all of whose elements are ``element``."""
        return StackContent(None, self.count, self.bound, self.least, element)


class ArrayContent:
    """The elements of a TensorArray, and for each whether it is empty, written or cleared."""

    __slots__ = ("buffer", "marks")

    bound = least = 0
    known = None

    def __init__(self, buffer: Any = None, marks: Any = None) -> None:
        self.buffer = buffer
        self.marks = marks

    @property
    def arrays(self) -> list[Any]:
        return [self.buffer] if self.marks is None else [self.buffer, self.marks]

    def with_arrays(self, arrays: list[Any]) -> ArrayContent:
        return ArrayContent(*arrays)


def new_buffers(shapes: Iterable[Any], device: Any) -> tuple[Any, ...]:
    """Buffers of these shapes and types on ``device``."""
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        made = [jnp.zeros(shape.shape, shape.dtype) for shape in shapes]
        return tuple(made if device is None else jax.device_put(made, device))


class Effects:
    """What stacks and arrays hold at one point of a trace."""

    def __init__(self, run: Any = None, given: Iterable[Any] = ()) -> None:
        """``given`` are the arguments of the segment."""
        self.contents: dict[Handle, Any] = {}
        self.run = run
        """The number of the run (``runnel.runtime.loop_watch``), traced."""
        self._given = {id(value): value for value in given}
        self.ranges: dict[int, tuple[Any, int, int]] = {}
        """Integers (traced, by identity) of which the least and the greatest value are known."""

    def large_buffers(self, platform: str) -> list[Any]:
        """Buffers that a segment hands out to be lent to its next run (donated).

        On a CPU all memory that XLA needs meanwhile is got from the operating system and given
        back each time, with a page fault for every 4 KiB: an eighth of a recurrent network's step.
        """
        if platform != "cpu":
            return []
        found = {
            id(content.buffer): content.buffer
            for handle, content in self.contents.items()
            if hasattr(content.buffer, "aval")
            and not (isinstance(handle, ArrayHandle) and handle.given)
        }
        return [buffer for buffer in found.values() if buffer.nbytes > _SMALL]

    def is_given(self, value: Any) -> bool:
        """True for an argument of the segment."""
        return id(value) in self._given

    def note_range(self, value: Any, least: int, greatest: int) -> None:
        self.ranges[id(value)] = (value, least, greatest)  # which keeps the identity its own

    def range_of(self, value: Any) -> tuple[int, int] | None:
        """The least and the greatest value that an integer may have, if known."""
        if isinstance(value, np.ndarray | np.generic | int):
            return int(value), int(value)
        found = self.ranges.get(id(value))
        return found and (found[1], found[2])
