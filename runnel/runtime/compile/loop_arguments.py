"""The arguments of a loop that is compiled by itself (``loop_alone``): a signature, and arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.graph.shapes import Dims
from runnel.ops.stacks import Stack
from runnel.ops.tensor_array_ops import ArrayState
from runnel.runtime.compile.buffer_ops import CLEARED, WRITTEN
from runnel.runtime.compile.buffers import NotCompilable

_ALIGNED = 64
"""Where an array begins that XLA takes without a copy."""


@dataclass(frozen=True, slots=True)
class Known:
    """A small array of integers that the loop is compiled for."""

    content: bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def value(self) -> np.ndarray:
        return np.frombuffer(self.content, self.dtype).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class Given:
    """An array that is an argument; an integer that ``counts`` is at most the capacity."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    counts: bool = False


@dataclass(frozen=True, slots=True)
class LoopResource:
    """A stack or an array, by its number."""

    number: int


@dataclass(frozen=True, slots=True)
class GivenStack:
    """A stack, with the shape of its buffer if it has one."""

    dtype: np.dtype[Any]
    limit: int
    buffer: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class GivenArray:
    """A TensorArray; ``element`` is the shape of its elements if it has some."""

    dtype: np.dtype[Any]
    dims: Dims
    clears: bool
    sums: bool
    alike: bool
    element: tuple[int, ...] | None
    is_full: bool
    """True when every element is there."""
    spent: bool
    """True when every element has been read and is gone: a loop may have to do with its
    gradients, but no longer with the array."""
    gradients: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LoopSignature:
    """What a loop is compiled for."""

    capacity: int
    arguments: tuple[Known | Given | LoopResource, ...]
    resources: tuple[GivenStack | GivenArray, ...]


class Arguments:
    """The arguments of one run of a loop: their signature, and the arrays that a call takes."""

    def __init__(self, values: Sequence[Any], capacity: int, varying: Mapping[int, bool]) -> None:
        """``varying`` has the positions of integers that are not compiled for; those that are
        true are counts. A :class:`NotCompilable` says that these have no compiled form."""
        self.resources: list[Stack | ArrayState] = []
        self._resources: list[Any] = []
        self._arrays: list[Any] = []
        self._capacity = capacity
        described: list[Known | Given | LoopResource] = []
        for position, value in enumerate(values):
            if isinstance(value, Stack | ArrayState):
                described.append(LoopResource(self._number(value)))
            elif not isinstance(value, np.ndarray | np.generic) or value.dtype == object:
                raise NotCompilable("a value that is no array")
            elif is_small_integer(value) and position not in varying:
                described.append(Known(value.tobytes(), value.dtype, value.shape))
            else:
                described.append(Given(value.shape, value.dtype, varying.get(position, False)))
                self._arrays.append(value)
        self.signature = LoopSignature(capacity, tuple(described), tuple(self._resources))

    def _number(self, resource: Stack | ArrayState) -> int:
        for number, known in enumerate(self.resources):
            if known is resource:
                return number
        number = len(self.resources)
        self.resources.append(resource)
        self._resources.append(None)
        described = self._stack(resource) if isinstance(resource, Stack) else self._array(resource)
        self._resources[number] = described
        return number

    @staticmethod
    def _stack(stack: Stack) -> GivenStack:
        if stack.values:
            raise NotCompilable("a stack that the interpreter has filled")
        shape = None if stack.buffer is None else stack.buffer.shape
        return GivenStack(stack.elem_type.np_dtype, stack.limit, shape)

    def _array(self, array: ArrayState) -> GivenArray:
        if array.closed or array.dynamic or len(array.values) > self._capacity:
            raise NotCompilable("an array that is closed, or grows")
        shapes = {value.shape for value in array.values if value is not None}
        if len(shapes) > 1:
            raise NotCompilable("the elements of an array differ in shape")
        spent = not shapes and not array.sums and any(s is not None for s in array.shapes)
        element = next(iter(shapes), None)
        gradients = tuple([(name, self._number(of)) for name, of in array.gradients.items()])
        kind = (array.clears, array.sums, array.alike)
        is_full = bool(shapes) and all(value is not None for value in array.values)
        state = (element, is_full, spent)
        return GivenArray(array.dtype.np_dtype, array.dims, *kind, *state, gradients)

    def operands(
        self, scratch: Scratch, donated: Collection[int]
    ) -> tuple[list[Any], list[Any], dict[int, Any]]:
        """What a call takes: arrays; what stacks and arrays hold; buffers that it may replace."""
        held: list[Any] = []
        handed_over: dict[int, Any] = {}
        for number, resource in enumerate(self.resources):
            if isinstance(resource, ArrayState):
                held.append(self._elements(resource, self._resources[number], scratch))
            elif resource.buffer is None:
                held.append([])
            elif number in donated:
                held.append([np.int32(resource.count)])
                handed_over[number] = resource.buffer
            else:
                held.append([np.int32(resource.count), resource.buffer])
        return self._arrays, held, handed_over

    def _elements(self, array: ArrayState, described: GivenArray, scratch: Scratch) -> list[Any]:
        size = len(array.values)
        if described.element is None:
            return [np.int32(size)]
        buffer = scratch.take((self._capacity, *described.element), described.dtype)
        marks = np.zeros(self._capacity, np.int8)
        if described.is_full:
            np.stack(array.values, out=buffer[:size])
            marks[:size] = WRITTEN
        else:
            for index, value in enumerate(array.values):
                buffer[index] = 0 if value is None else value
                if value is not None:
                    marks[index] = WRITTEN
                elif array.shapes[index] is not None:
                    marks[index] = CLEARED
        return [np.int32(size), buffer] if array.sums else [np.int32(size), buffer, marks]


class Scratch:
    """Memory for the arguments of one call, which later ones use again.

    New memory costs a page fault for every 4 KiB: more than what a loop of a small network takes.
    """

    def __init__(self) -> None:
        self._free: dict[Any, list[np.ndarray]] = {}
        self._taken: list[tuple[Any, np.ndarray]] = []

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """An array, of whatever content, where XLA can use it without a copy."""
        free = self._free.get((shape, dtype))
        if free:
            array = free.pop()
        else:
            count = math.prod(shape) * dtype.itemsize
            memory = np.empty(count + _ALIGNED, np.uint8)
            first = -memory.ctypes.data % _ALIGNED
            array = memory[first : first + count].view(dtype).reshape(shape)
        self._taken.append(((shape, dtype), array))
        return array

    def give_back(self) -> None:
        """Makes what was taken free again."""
        for key, array in self._taken:
            self._free.setdefault(key, []).append(array)
        self._taken = []


def is_small_integer(value: Any) -> bool:
    """True for an array of few integers, which may be a shape or a number of iterations."""
    return value.dtype.kind in "iub" and value.size <= 8
