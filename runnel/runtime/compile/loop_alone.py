"""Compiles a loop by itself, for as many iterations as it turns out to have, up to a bound.

A compiled segment knows the length of every array, and so how often its loops run. If that changes
from step to step, the segment is interpreted. But its loops need not be: nothing in an iteration
depends on how many there are. So a loop is compiled with room for ``capacity`` elements in its
stacks and TensorArrays, and takes the number of iterations as an argument, like any integer that
varies. The contents of its stacks go to the loop of the gradient as they are.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np

from runnel.ops.stacks import Stack
from runnel.ops.tensor_array_ops import ArrayState
from runnel.passes.program.program import Node
from runnel.passes.structure.structured import nested_nodes
from runnel.runtime.compile.buffer_ops import EMPTY, WRITTEN
from runnel.runtime.compile.buffers import (
    ArrayContent,
    ArrayHandle,
    Effects,
    NotCompilable,
    StackContent,
    StackHandle,
    new_buffers,
)
from runnel.runtime.compile.loop_arguments import (
    Arguments,
    Given,
    GivenArray,
    GivenStack,
    Known,
    LoopResource,
    LoopSignature,
    Scratch,
)
from runnel.runtime.compile.rows import is_known
from runnel.runtime.interpret.code import Code, TracedCall
from runnel.runtime.state.in_thread import uninterrupted
from runnel.wide_types import with_wide_types

_MOST_SPARE = 32


class SpareStacks:
    """Buffers of stacks that are empty again, by shape and type; shared by the loops of a step."""

    def __init__(self) -> None:
        self._free: dict[Any, list[Any]] = {}

    def keep(self, buffer: Any) -> None:
        """Keeps a buffer that nothing uses any more, if there are not many of its kind."""
        free = self._free.setdefault((buffer.shape, buffer.dtype), [])
        if len(free) < _MOST_SPARE:
            free.append(buffer)

    def take(self, shape: Any) -> Any:
        """A buffer, or None."""
        free = self._free.get((shape.shape, shape.dtype))
        return free.pop() if free else None


class CompiledLoop:
    """A loop, compiled for one signature."""

    def __init__(self, call: TracedCall, signature: LoopSignature, spare: SpareStacks) -> None:
        import jax

        from runnel.runtime.compile import executable_cache  # which imports JAX

        self._call = call
        self._node: Node = call.node
        self._signature = signature
        self._spare = spare
        self._lock = threading.Lock()
        """For what follows, which belongs to one call at a time."""
        self._scratch = Scratch()
        self._last: dict[int, tuple[weakref.ref[Any], Any]] = {}
        """What the last call has left in a stack or an array: that, and its buffer."""
        self._was_called = False
        self._changed: list[int] = []
        """The numbers of the stacks and arrays that it leaves in another state."""
        self._known: list[Any] = []
        """For each result what it is, if that does not depend on data."""
        given = [a for a in signature.arguments if isinstance(a, Given)]
        avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in given]
        held = [self._held_avals(resource) for resource in signature.resources]
        self._lent: dict[int, Any] = {}
        """Shapes of the buffers of what begins empty."""
        self._donated: dict[int, Any] = {}
        """Those of stacks that it only pops: what they hold is the same afterwards."""
        with jax.enable_x64(True):
            _, left, _ = jax.eval_shape(self._traced, avals, held, {}, {})
            pushes = any(n.op_def.name == "StackPushV2" for n in nested_nodes([self._node]))
            for number, arrays in zip(self._changed, left, strict=True):
                resource = signature.resources[number]
                if isinstance(resource, GivenStack) and resource.buffer is not None:
                    if not pushes:
                        self._donated[number] = held[number].pop()
                elif isinstance(resource, GivenStack) or resource.element is None:
                    self._lent[number] = arrays[0]
            # What is lent to arrays is not read: it is the memory of what is given back.
            self._jitted = jax.jit(self._traced, donate_argnums=(2, 3), keep_unused=True)
            traced = self._jitted.trace(avals, held, self._donated, self._lent)
            executable_cache.compiled(traced.lower())  # which JAX remembers for the call

    def _held_avals(self, resource: GivenStack | GivenArray) -> list[Any]:
        import jax

        capacity = self._signature.capacity
        scalar, dtype = jax.ShapeDtypeStruct((), np.int32), resource.dtype
        if isinstance(resource, GivenStack):
            if resource.buffer is None:
                return []
            return [scalar, jax.ShapeDtypeStruct(resource.buffer, dtype)]
        if resource.element is None:
            return [scalar]
        buffer = jax.ShapeDtypeStruct((capacity, *resource.element), dtype)
        marks = [] if resource.sums else [jax.ShapeDtypeStruct((capacity,), np.int8)]
        return [scalar, buffer, *marks]

    def _traced(
        self,
        arrays: list[Any],
        held: list[Any],
        donated: dict[int, Any],
        lent: dict[int, Any],
    ) -> Any:
        import jax.numpy as jnp

        from runnel.runtime.compile.checks import Checks
        from runnel.runtime.compile.segment_trace import SegmentTrace
        from runnel.runtime.compile.structured_trace import StructuredTrace

        capacity = self._signature.capacity
        effects = Effects()
        handles = self._handles(effects, held, donated, lent)
        before = dict(effects.contents)
        gradients = [set(h.gradients) for h in handles if isinstance(h, ArrayHandle)]
        rest = iter(arrays)
        values: list[Any] = []
        for argument in self._signature.arguments:
            if isinstance(argument, Known):
                values.append(argument.value)
            elif isinstance(argument, LoopResource):
                values.append(handles[argument.number])
            else:
                values.append(next(rest))
                if argument.counts:
                    effects.note_range(values[-1], 0, capacity)
        checks = Checks()
        checks.node = self._node
        owner = SegmentTrace(Code(), [], checks, "cpu", effects)
        found = StructuredTrace(owner, self._call, self._node).evaluate(values)
        if gradients != [set(h.gradients) for h in handles if isinstance(h, ArrayHandle)]:
            raise NotCompilable("a loop that begins an array's gradients")
        results = list(found) if isinstance(found, list | tuple) else [found]
        self._known = [v if is_known(v) else None for v in results]
        given = [v for v in results if not is_known(v)]
        if not all(hasattr(value, "aval") for value in given):
            raise NotCompilable("a result that is no array")
        self._changed = [
            n for n, h in enumerate(handles) if effects.contents.get(h) is not before.get(h)
        ]
        left = [self._left(n, effects.contents[handles[n]]) for n in self._changed]
        holds = checks.hold()
        return given, left, jnp.asarray(True) if holds is None else holds

    def _handles(
        self, effects: Effects, held: list[Any], donated: dict[int, Any], lent: dict[int, Any]
    ) -> list[Any]:
        capacity = self._signature.capacity
        handles: list[Any] = []
        resources = self._signature.resources
        for number, (resource, arrays) in enumerate(zip(resources, held, strict=True)):
            if isinstance(resource, GivenStack):
                limit = None if resource.limit < 0 else resource.limit
                stack = StackHandle(resource.dtype, limit)
                content = StackContent()
                if arrays:
                    buffer = donated[number] if number in donated else arrays[1]
                    content = StackContent(buffer, arrays[0], buffer.shape[0])
                elif number in lent:
                    content = StackContent(lent[number])
                effects.contents[stack] = content
                handles.append(stack)
                continue
            kind = (resource.clears, resource.sums, resource.alike)
            array = ArrayHandle(resource.dtype, resource.dims, *kind)
            handles.append(array)
            if not resource.spent:
                size, *buffers = arrays
                made = ArrayContent(capacity, 0, size=size)
                effects.contents[array] = made.with_arrays(buffers) if buffers else made
        for resource, handle in zip(self._signature.resources, handles, strict=True):
            if isinstance(resource, GivenArray):
                handle.gradients = {name: handles[n] for name, n in resource.gradients}
        return handles

    def _left(self, number: int, content: StackContent | ArrayContent) -> list[Any]:
        """What the loop has left in a stack or an array: buffers, and what else is to be known."""
        import jax.numpy as jnp

        if isinstance(content, ArrayContent):
            content = content.with_traced_marks()
            described = self._signature.resources[number]
            if isinstance(described, GivenArray) and described.is_full and not described.sums:
                return [content.marks]  # nothing can have been written to it
            return content.arrays
        buffer = content.buffer
        if content.known is not None:
            buffer = jnp.broadcast_to(content.known, (max(content.bound, 1), *content.known.shape))
        if buffer is None:
            raise NotCompilable("a stack that stays empty")
        return [buffer, jnp.asarray(content.count, np.int32)]

    def run(self, arguments: Arguments) -> list[Any] | None:
        """The results; stacks and arrays are left as the loop left them.

        None where a check failed: then nothing has changed, and the interpreter finds the error.
        """
        with self._lock:
            operands = arguments.operands(self._scratch, self._donated)
            borrowed = self._borrowed()
            call = with_wide_types if self._was_called else uninterrupted
            given, left, holds = call(self._jitted, *operands, borrowed)
            self._was_called = True
            succeeded = bool(np.asarray(holds))  # which is there when the call has ended
            self._scratch.give_back()
            left = dict(zip(self._changed, left, strict=True))
            if succeeded:
                for number in self._lent:
                    owner = weakref.ref(arguments.resources[number])
                    self._last[number] = owner, left[number][0]
        if not succeeded:
            for number in self._donated:
                stack = arguments.resources[number]
                assert isinstance(stack, Stack)
                stack.buffer = left[number][0]
            return None
        rest = iter(given)
        results = [np.asarray(next(rest)) if v is None else v for v in self._known]
        for number, arrays in left.items():
            resource = arguments.resources[number]
            if isinstance(resource, Stack):
                resource.buffer, resource.count = arrays[0], int(np.asarray(arrays[1]))
                if resource.count == 0 and number in self._donated:
                    resource.buffer = None
                    self._spare.keep(arrays[0])
            else:
                _leave(resource, [np.asarray(array) for array in arrays])
        return results

    def _borrowed(self) -> dict[int, Any]:
        """Memory for what the loop fills: that of an earlier call, if nobody needs it any more."""
        found = {}
        for number, shape in self._lent.items():
            buffer = None
            if number in self._last:
                owner, buffer = self._last.pop(number)
                if owner() is not None or buffer.is_deleted():
                    buffer = None
            if buffer is None:
                buffer = self._spare.take(shape)
            found[number] = new_buffers([shape], None)[0] if buffer is None else buffer
        return found


def _leave(array: ArrayState, arrays: list[np.ndarray]) -> None:
    """Gives ``array`` the elements that a loop has left in it."""
    size = len(array.values)
    if len(arrays) == 1 and not array.sums:
        marks = arrays[0][:size]
        array.values[:] = [
            value if mark == WRITTEN else None
            for value, mark in zip(array.values, marks, strict=True)
        ]
        return
    buffer = arrays[0][:size]
    shape = buffer.shape[1:]
    marks = np.full(size, WRITTEN) if array.sums else arrays[1][:size]
    if (marks == WRITTEN).all():
        array.values[:] = buffer
    else:
        array.values[:] = [
            row if mark == WRITTEN else None for row, mark in zip(buffer, marks, strict=True)
        ]
    array.shapes[:] = [None if mark == EMPTY else shape for mark in marks]
    if array.alike and (marks != EMPTY).any():
        array.dims = shape
