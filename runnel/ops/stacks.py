"""Stacks of tensors, which live for one step: where a loop keeps values for its gradient."""

from __future__ import annotations

from typing import Any

from runnel.graph.errors import InvalidArgumentError, OutOfRangeError
from runnel.graph.registry import register_op


class Stack:
    """A stack at run time; what its handle denotes."""

    __slots__ = ("values", "limit")

    def __init__(self, limit: int) -> None:
        self.values: list[Any] = []
        self.limit = limit


stack_op = register_op(
    "StackV2",
    inputs="max_size: int32",
    outputs="handle: resource",
    attrs=["elem_type: type", "stack_name: string = ''"],
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
def _(xp, max_size):
    return Stack(int(max_size))


@stack_push_op.shape
def _(handle, elem):
    return elem.dims


@stack_push_op.kernel
def _(xp, stack, elem):
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
    if not stack.values:
        raise OutOfRangeError(None, None, "The stack is empty: nothing is left to pop")
    return stack.values.pop()


@stack_pop_joined_op.shape
def _(handle, count, *, element_shape_except0):
    return (None, *element_shape_except0._dims)


@stack_pop_joined_op.kernel
def _(xp, stack, count, *, elem_type, element_shape_except0):
    """The last ``count`` elements, in the order in which they were pushed, joined along rows."""
    if len(stack.values) < count:
        raise OutOfRangeError(
            None, None, f"The stack has {len(stack.values)} elements, not {count} to pop"
        )
    if count == 0:
        return xp.zeros((0, *element_shape_except0._dims), elem_type.np_dtype)
    first = len(stack.values) - int(count)
    popped = stack.values[first:]
    del stack.values[first:]
    return xp.concatenate(popped)


@stack_close_op.kernel
def _(xp, stack):
    stack.values.clear()
    return ()
