"""Stacks of tensors, which live for one step: where a loop keeps values for its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError, OutOfRangeError
from runnel.graph.registry import register_op


class Stack:
    """A stack at run time; what its handle denotes.

    What a compiled loop has pushed stays as that left it, the first ``count`` rows of ``buffer``,
    until something else is done with it; ``values`` is empty then.
    """

    __slots__ = ("values", "limit", "elem_type", "buffer", "count", "__weakref__")

    def __init__(self, limit: int, elem_type: Any) -> None:
        self.values: list[Any] = []
        self.limit = limit
        self.elem_type = elem_type
        self.buffer: Any = None
        self.count = 0

    def unpacked(self) -> list[Any]:
        """The elements, one by one."""
        if self.buffer is not None:
            self.values = list(self.last(self.count))
            self.buffer = None
        return self.values

    def last(self, count: int) -> np.ndarray:
        """The last ``count`` elements of the buffer."""
        return np.asarray(self.buffer)[self.count - count : self.count]


stack_op = register_op(
    "StackV2",
    inputs="max_size: int32",
    outputs="handle: resource",
    attrs=["elem_type: type", "stack_name: string = ''"],
    static_inputs=("max_size",),
    host=True,
    stateful=True,
    differentiable=False,
)
stack_push_op = register_op(
    "StackPushV2",
    inputs="handle: resource, elem: T",
    outputs="output: T",
    attrs=["T: type", "swap_memory: bool = false"],
    host=True,
    stateful=True,
    differentiable=False,
)
stack_pop_op = register_op(
    "StackPopV2",
    inputs="handle: resource",
    outputs="elem: elem_type",
    attrs="elem_type: type",
    host=True,
    stateful=True,
    differentiable=False,
)
stack_pop_joined_op = register_op(
    "_StackPopJoined",  # which a pass makes of a loop's pops; graphs have none
    inputs="handle: resource, count: int32",
    outputs="elems: elem_type",
    attrs=["elem_type: type", "element_shape_except0: shape"],
    static_inputs=("count",),
    host=True,
    stateful=True,
    differentiable=False,
)
stack_close_op = register_op(
    "StackCloseV2", inputs="handle: resource", host=True, stateful=True, differentiable=False
)


@stack_op.shape
def _(max_size):
    return (2,)  # as TensorFlow has it: a reader of a graph compares


@stack_op.kernel
def _(xp, max_size, *, elem_type):
    return Stack(int(max_size), elem_type)


@stack_push_op.shape
def _(handle, elem):
    return elem.dims


@stack_push_op.kernel
def _(xp, stack, elem):
    if stack.buffer is not None:
        stack.unpacked()
    if 0 <= stack.limit <= len(stack.values):
        raise InvalidArgumentError(
            None, None, f"The stack is full: it takes at most {stack.limit} elements"
        )
    stack.values.append(elem)
    return elem


@stack_pop_op.shape
def _(handle):
    return None


@stack_pop_op.kernel
def _(xp, stack):
    if stack.buffer is not None:
        stack.unpacked()
    if not stack.values:
        raise OutOfRangeError(None, None, "The stack is empty: nothing is left to pop")
    return stack.values.pop()


@stack_pop_joined_op.shape
def _(handle, count, *, element_shape_except0):
    return (None, *element_shape_except0._dims)


@stack_pop_joined_op.kernel
def _(xp, stack, count, *, elem_type, element_shape_except0):
    """The last ``count`` elements, in the order in which they were pushed, joined along rows."""
    present = len(stack.values) if stack.buffer is None else stack.count
    if present < count:
        raise OutOfRangeError(None, None, f"The stack has {present} elements, not {count} to pop")
    if count == 0:
        return xp.zeros((0, *element_shape_except0._dims), elem_type.np_dtype)
    if stack.buffer is not None:
        popped = stack.last(int(count))
        stack.count -= int(count)
        return popped.reshape((-1, *popped.shape[2:]))
    first = len(stack.values) - int(count)
    popped = stack.values[first:]
    del stack.values[first:]
    return xp.concatenate(popped)


@stack_close_op.kernel
def _(xp, stack):
    stack.unpacked().clear()
    return ()
