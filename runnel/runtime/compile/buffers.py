"""Stacks and TensorArrays in compiled code: buffers of fixed size, passed on from use to use.

While a segment is traced, a handle is an object of Python, and :class:`Effects` has the contents. A
loop carries the buffers that its body changes, a conditional hands them out of both branches
(``runtime.compile.structured_trace``). Their sizes are known then: a stack has room for as many
elements as the loops around its pushes have iterations.

For a loop with ``swap_memory`` on an accelerator, the buffers of stacks are in the host's memory.
XLA copies an element there when it is pushed and back when it is popped, while the loop goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from runnel.graph.shapes import Dims
from runnel.runtime.state.in_thread import uninterrupted

_ZERO = np.int32(0)
_SMALL = 1 << 18
"""Bytes up to which the allocator keeps what is given back to it."""
_SWAPPED = 1 << 14
"""Bytes from which on an element is worth a copy to the host."""


class NotCompilable(Exception):
    """These shapes, or this use of a stack or an array, have no compiled form: they run anyway.

    ``node`` is the one of the segment in which they are.
    """

    node: Any = None


class StackHandle:
    """A stack, while it is traced; ``limit`` is the most that it takes, if there is one."""

    def __init__(self, dtype: Any, limit: int | None = None) -> None:
        self.dtype = dtype
        self.limit = limit


class ArrayHandle:
    """A TensorArray, while it is traced; ``sums`` for one that adds up gradients.

    ``dynamic`` says that it grows when something is written behind its end.
    """

    def __init__(
        self,
        dtype: Any,
        dims: Dims,
        clears: bool,
        sums: bool = False,
        alike: bool = False,
        dynamic: bool = False,
    ) -> None:
        self.dynamic = dynamic
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


@dataclass(slots=True, eq=False)
class StackContent:
    """The elements of a stack are the first ``count`` of ``buffer``."""

    buffer: Any = None
    count: Any = _ZERO
    bound: int = 0
    """How many elements there are at most at this point."""
    least: int = 0
    """And at least."""
    known: Any = None
    """Where every element is the same array of NumPy (a shape, say), that; there is no buffer."""
    on_host: bool = False
    """True when the buffer is in the memory of the host."""
    spare: int = 0
    """Rows of a buffer on the host that are never used. XLA (0.11) makes one of buffers there
    that look alike, and copies it whole for each: so no two of them have the same shape."""

    @property
    def arrays(self) -> list[Any]:
        return [self.count] if self.buffer is None else [self.count, self.buffer]

    def with_arrays(self, arrays: list[Any]) -> StackContent:
        count, *buffer = arrays
        return replace(self, count=count, buffer=buffer[0] if buffer else None)

    def moved(self, by: int, buffer: Any) -> StackContent:
        """With an element more or less, in ``buffer``."""
        bound, least = self.bound + max(0, by), self.least + by
        return replace(self, buffer=buffer, count=self.count + by, bound=bound, least=least)

    def with_room(self, room: int, element: Any) -> StackContent:
        """The same elements, in a buffer for at least ``room`` like ``element``."""
        import jax.numpy as jnp

        has = 0 if self.buffer is None else self.buffer.shape[0]
        if has >= room:
            return replace(self, known=None)
        buffer = jnp.zeros((room - has + self.spare, *element.shape), element.dtype)
        if has:
            present = to_device(self.buffer) if self.on_host else self.buffer
            buffer = jnp.concatenate([present, buffer])
        if self.on_host:
            buffer = to_host(buffer)  # of zeros, XLA makes no copy: they are made there
        return replace(self, buffer=buffer, known=None)

    def like(self, other: StackContent) -> StackContent:
        """The same, in the memory in which ``other`` is."""
        return replace(self, on_host=other.on_host, spare=other.spare)

    def knowing(self, element: Any) -> StackContent:
        """The same, all of whose elements are ``element``."""
        return replace(self, buffer=None, known=element)


def to_host(value: Any) -> Any:
    """``value``, traced, in the memory of the host."""
    import jax

    return jax.device_put(value, jax.memory.Space.Host)


def to_device(value: Any) -> Any:
    """``value``, traced, in the memory of the device."""
    import jax

    return jax.device_put(value, jax.memory.Space.Device)


def host_memory(platform: str) -> HostMemory | None:
    """The memory of the host, beside a device that has its own."""
    return None if platform == "cpu" else HostMemory()


class HostMemory:
    """The stacks of a segment that are in the memory of the host."""

    def __init__(self) -> None:
        self._alike: dict[Any, list[StackHandle]] = {}
        """By the shape and type of their elements."""

    def take(self, handle: StackHandle, content: StackContent, element: Any) -> StackContent:
        """``content``, still without a buffer, to be kept here if its elements are large."""
        if element.size * element.dtype.itemsize < _SWAPPED:
            return content
        alike = self._alike.setdefault((element.shape, element.dtype), [])
        if handle not in alike:
            alike.append(handle)
        return replace(content, on_host=True, spare=alike.index(handle))


class Sweep(NamedTuple):
    """An array's use by a loop that takes its elements one by one, each in one iteration.

    The element of this iteration, at ``index``, has ``mark`` by now. When the loop has ended, all
    from ``first`` to ``last`` have that.
    """

    loop: Any
    index: Any
    mark: int
    first: int
    last: int


@dataclass(slots=True, eq=False)
class ArrayContent:
    """The elements of a TensorArray, and for each whether it is empty, written or cleared."""

    bound: int
    """How many elements there are at most at this point; the buffer may have room for more."""
    least: int
    """And at least: as many, unless an array grows in a loop."""
    buffer: Any = None
    marks: Any = None
    """Of each element; an array of NumPy as long as they are known."""
    swept: Sweep | None = None
    """Where marks are known: what the iteration that is traced does to one of them."""
    reached: dict[Any, int] = field(default_factory=dict)
    """How many there are at least when a loop has ended, by its trace."""
    size: Any = None
    """How many there are, traced, where the buffer has room for any number up to a bound."""

    @property
    def arrays(self) -> list[Any]:
        traced = [] if self.marks is None or self.has_known_marks else [self.marks]
        return [self.buffer, *traced]

    def with_arrays(self, arrays: list[Any]) -> ArrayContent:
        buffer, *marks = arrays
        return replace(self, buffer=buffer, marks=marks[0] if marks else self.marks)

    @property
    def has_known_marks(self) -> bool:
        return isinstance(self.marks, np.ndarray)

    def with_traced_marks(self) -> ArrayContent:
        """The same, for a use that depends on data."""
        import jax.numpy as jnp

        if not self.has_known_marks:
            return self
        return replace(self, marks=jnp.asarray(self.marks), swept=None)

    def with_room(self, room: int) -> ArrayContent:
        """The same elements, in a buffer for at least ``room``."""
        import jax.numpy as jnp

        if self.buffer is None or self.buffer.shape[0] >= room:
            return self
        made = []
        for array in self.arrays:
            rest = (room - array.shape[0], *array.shape[1:])
            made.append(jnp.concatenate([array, jnp.zeros(rest, array.dtype)]))
        grown = self.with_arrays(made)
        if grown.has_known_marks:
            grown.marks = np.pad(grown.marks, (0, room - len(grown.marks)))
        return grown

    def with_elements(self, indices: tuple[int, int], loop: Any) -> ArrayContent:
        """With an element at one of ``indices``, at the greatest of them when ``loop`` ends."""
        first, last = indices
        bound, least = max(self.bound, last + 1), max(self.least, first + 1)
        reached = self.reached
        if loop is not None:
            reached = {**reached, loop: max(last + 1, reached.get(loop, 0))}
        return replace(self, bound=bound, least=least, reached=reached).with_room(bound)

    def after_loop(self, start: ArrayContent, loop: Any, complete: bool) -> ArrayContent:
        """This, at the end of an iteration of ``loop``, at the end of all of them.

        It is ``complete`` when none of them is left out; then there is at least one.
        """
        if not complete:
            return replace(self, least=start.least, reached=start.reached)
        marks = self.marks
        if self.swept is not None and self.swept.loop is loop:
            marks = self.marks.copy()
            marks[self.swept.first : self.swept.last + 1] = self.swept.mark
        least = max(self.least, self.reached.get(loop, 0))
        reached = {other: count for other, count in self.reached.items() if other is not loop}
        return replace(self, least=least, reached=reached, marks=marks, swept=start.swept)


def new_buffers(shapes: Sequence[Any], device: Any) -> tuple[Any, ...]:
    """Buffers of these shapes and types on ``device``."""
    return _making_buffers(tuple((shape.shape, shape.dtype) for shape in shapes), device)()


@lru_cache
def _making_buffers(shapes: tuple[tuple[Any, Any], ...], device: Any) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    from runnel.runtime.compile import executable_cache  # which imports JAX

    def zeros() -> tuple[Any, ...]:
        return tuple(jnp.zeros(shape, dtype) for shape, dtype in shapes)

    sharding = None if device is None else jax.sharding.SingleDeviceSharding(device)
    making = jax.jit(zeros, out_shardings=sharding)
    return uninterrupted(lambda: executable_cache.compiled(making.lower()))


class Effects:
    """What stacks and arrays hold at one point of a trace."""

    def __init__(
        self, asker: Any = None, given: Iterable[Any] = (), host: HostMemory | None = None
    ) -> None:
        """``given`` are the arguments of the segment."""
        self.contents: dict[Handle, Any] = {}
        self.asker = asker
        """What asks whether to go on (``runnel.runtime.compile.watch``)."""
        self.asks = False
        """True when a loop asks whether to go on."""
        self.loop_seconds = 0.0
        """How long the loops run that do not ask, as estimated."""
        self.sweeper: Any = None
        """The loop that is traced, where what is traced runs once in each of its iterations."""
        self.open_loops = 0
        """The loops so far whose end depends on data."""
        self.host = host
        """The memory of the host, where it is not that of the device."""
        self._given = {id(value): value for value in given}
        self._filled: dict[int, Any] = {}
        self._ranges: dict[int, tuple[Any, int, int, Any]] = {}
        """Integers (traced, by identity) of which the least and the greatest value are known, and
        the loop whose counter each is, if it is one."""

    @contextmanager
    def swept_by(self, loop: Any) -> Iterator[None]:
        """Within the block, what is traced runs once in each iteration of ``loop``, if not None."""
        before, self.sweeper = self.sweeper, loop
        try:
            yield
        finally:
            self.sweeper = before

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """What the block does to stacks and arrays is forgotten at its end."""
        before = dict(self.contents)
        try:
            yield
        finally:
            self.contents = before

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
        found.update(self._filled)
        return [buffer for buffer in found.values() if buffer.nbytes > _SMALL]

    def note_arrays(self, arrays: Iterable[Any]) -> None:
        """Takes note of arrays that the blocks of a repetition have filled."""
        self._filled.update((id(array), array) for array in arrays)

    def is_given(self, value: Any) -> bool:
        """True for an argument of the segment."""
        return id(value) in self._given

    def note_range(self, value: Any, least: int, greatest: int, loop: Any = None) -> None:
        """``value`` is between the two; as a counter of ``loop`` it runs through all of that."""
        self._ranges[id(value)] = (value, least, greatest, loop)  # which keeps the identity its own

    def range_of(self, value: Any) -> tuple[int, int] | None:
        """The least and the greatest value that an integer may have, if known."""
        if isinstance(value, np.ndarray | np.generic | int):
            return int(value), int(value)
        found = self._ranges.get(id(value))
        return found and (found[1], found[2])

    def counted_by(self, value: Any) -> Any:
        """The loop of which ``value`` is a counter, or None."""
        found = self._ranges.get(id(value))
        return found and found[3]
