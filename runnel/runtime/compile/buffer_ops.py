"""Traces the operations on stacks and TensorArrays: what each does to the buffers.

It checks an index or an element's state where the trace does not know that it is right. The
interpreter finds the words for a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from runnel.graph.shapes import is_fully_defined
from runnel.passes.program.program import Node
from runnel.runtime.compile.buffers import (
    ArrayContent,
    ArrayHandle,
    Effects,
    NotCompilable,
    StackContent,
    StackHandle,
    Sweep,
    to_device,
    to_host,
)
from runnel.runtime.compile.rows import is_known

EMPTY, WRITTEN, CLEARED = 0, 1, 2
"""The marks of a TensorArray's elements."""

Check = Callable[[Any, Callable[[], str]], None]


def evaluate(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    """What a stack's or an array's op gives; ``effects`` changes as it says."""
    return _EVALUATE[node.op_def.name](effects, node, values, check)


def _unexplained() -> str:
    return "checked by the interpreter"


# Stacks ---------------------------------------------------------------------------------------


def _make_stack(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    limit = int(values[0])
    handle = StackHandle(node.attrs["elem_type"].np_dtype, None if limit < 0 else limit)
    effects.contents[handle] = StackContent()
    return handle


def _push(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    import jax.numpy as jnp
    from jax import lax

    handle, value = values
    content = effects.contents[handle]
    if handle.limit is not None and content.bound >= handle.limit:
        check(content.count < handle.limit, _unexplained)
    if is_known(value) and content.buffer is None:
        if content.known is None and content.bound == 0:
            content = content.knowing(np.asarray(value))
        if content.known is not None and np.array_equal(content.known, value):
            effects.contents[handle] = content.moved(1, None)
            return value
    if content.known is not None:
        raise NotCompilable("a stack of known and other elements")
    element = jnp.asarray(value, handle.dtype)
    if content.buffer is None and effects.host is not None and node.attrs["swap_memory"]:
        content = effects.host.take(handle, content, element)
    content = content.with_room(content.bound + 1, element)
    if content.buffer.shape[1:] != element.shape:
        raise NotCompilable("the elements of a stack differ in shape")
    kept = to_host(element) if content.on_host else element
    buffer = lax.dynamic_update_index_in_dim(content.buffer, kept, content.count, 0)
    effects.contents[handle] = content.moved(1, buffer)
    return value


def _pop(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    from jax import lax

    (handle,) = values
    content = effects.contents[handle]
    if content.buffer is None and content.known is None:
        raise NotCompilable("an empty stack")
    if content.least < 1:
        check(content.count >= 1, _unexplained)
    left = effects.contents[handle] = content.moved(-1, content.buffer)
    if content.known is not None:
        return content.known
    element = lax.dynamic_index_in_dim(content.buffer, left.count, 0, keepdims=False)
    return to_device(element) if content.on_host else element


def _pop_joined(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    import jax.numpy as jnp
    from jax import lax

    handle, count = values[0], int(values[1])
    content = effects.contents[handle]
    columns = tuple(node.attrs["element_shape_except0"]._dims)
    if count == 0:
        return jnp.zeros((0, *columns), handle.dtype)
    if content.buffer is None or content.bound < count:
        raise NotCompilable("a stack of known elements, or of too few, joined")
    if content.least < count:
        check(content.count >= count, _unexplained)
    left = effects.contents[handle] = content.moved(-count, content.buffer)
    elements = to_device(content.buffer) if content.on_host else content.buffer
    if not content.least == content.bound == elements.shape[0] == count:
        elements = lax.dynamic_slice_in_dim(elements, left.count, count)
    return elements.reshape((count * elements.shape[1], *columns))


# Arrays ---------------------------------------------------------------------------------------


def _make_array(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    size = int(values[0])
    if size < 0:
        raise NotCompilable("a negative size")
    attrs = node.attrs
    handle = ArrayHandle(
        attrs["dtype"].np_dtype,
        attrs["element_shape"]._dims,
        attrs["clear_after_read"],
        alike=attrs["identical_element_shapes"],
        dynamic=attrs["dynamic_size"],
    )
    effects.contents[handle] = ArrayContent(size, size)
    return handle, np.float32(0)


def _size_of(effects: Effects, handle: ArrayHandle) -> int:
    """The number of elements of an array, where it does not depend on data."""
    content = effects.contents[handle]
    if content.least != content.bound:
        raise NotCompilable("an array whose size is not known here")
    return content.bound


def _prepared(effects: Effects, handle: ArrayHandle, shape: tuple[int, ...]) -> ArrayContent:
    """The content of an array whose elements have this shape."""
    import jax.numpy as jnp

    content = effects.contents[handle]
    if content.buffer is None:
        marks = [] if handle.sums else [np.zeros(content.bound, np.int8)]
        buffer = jnp.zeros((content.bound, *shape), handle.dtype)
        effects.contents[handle] = content = content.with_arrays([buffer, *marks])
    if content.buffer.shape[1:] != tuple(shape):
        raise NotCompilable("the elements of an array differ in shape")
    return content


def _check_index(effects: Effects, handle: ArrayHandle, index: Any, check: Check) -> None:
    known = effects.range_of(index)
    if known is not None and known[0] >= 0 and known[1] < effects.contents[handle].least:
        return
    size = effects.contents[handle].size
    if size is None:
        size = _size_of(effects, handle)
    check((index >= 0) & (index < size), _unexplained)


def _grow(effects: Effects, handle: ArrayHandle, index: Any) -> None:
    """Makes room in an array for an element at ``index``."""
    known = effects.range_of(index)
    if known is None or known[0] < 0:
        raise NotCompilable("an array grows to a size that is not known")
    loop = effects.counted_by(index)
    effects.contents[handle] = effects.contents[handle].with_elements(known, loop)


def _write(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    import jax.numpy as jnp
    from jax import lax

    handle, index, value, _ = values
    element = jnp.asarray(value, handle.dtype)
    if handle.dynamic:
        _grow(effects, handle, index)
    else:
        _check_index(effects, handle, index, check)
    content = _prepared(effects, handle, element.shape)
    if handle.sums:
        present = lax.dynamic_index_in_dim(content.buffer, index, 0, keepdims=False)
        element = present + element
    else:
        _mark(effects, handle, index, lambda marks: marks == EMPTY, WRITTEN, check)
    buffer = lax.dynamic_update_index_in_dim(content.buffer, element, index, 0)
    _replace(effects, handle, buffer=buffer)
    return np.float32(0)


def _replace(effects: Effects, handle: ArrayHandle, **changes: Any) -> None:
    effects.contents[handle] = replace(effects.contents[handle], **changes)


def _mark(
    effects: Effects,
    handle: ArrayHandle,
    index: Any,
    allows: Callable[[Any], Any],
    after: int | None,
    check: Check,
) -> None:
    """Checks the mark of an element, and gives it another unless that is None.

    Where a loop takes each element in one iteration, all that it takes are looked at beforehand.
    """
    from jax import lax

    content = effects.contents[handle]
    if content.has_known_marks and is_known(index):
        if 0 <= int(index) < len(content.marks):  # or the index has been found wrong
            _mark_all(effects, handle, index.reshape(1), allows, after, check)
        return
    if content.has_known_marks:
        sweep = _sweep(effects, handle, index)
        if sweep is not None:
            present = content.marks[sweep.first : sweep.last + 1]
            check(np.all(allows(present if content.swept is None else sweep.mark)), _unexplained)
            if after is not None:
                _replace(effects, handle, swept=sweep._replace(mark=after))
            return
        content = content.with_traced_marks()
    check(allows(lax.dynamic_index_in_dim(content.marks, index, 0, keepdims=False)), _unexplained)
    if after is not None:
        marks = lax.dynamic_update_index_in_dim(content.marks, np.int8(after), index, 0)
        content = replace(content, marks=marks)
    effects.contents[handle] = content


def _sweep(effects: Effects, handle: ArrayHandle, index: Any) -> Sweep | None:
    """The use of an element by a loop that takes each in one iteration, if it is known to."""
    content, loop = effects.contents[handle], effects.counted_by(index)
    if loop is None or loop is not effects.sweeper or not loop.is_exact or handle.dynamic:
        return None
    if content.swept is not None:
        return content.swept if content.swept.index is index else None
    first, last = effects.range_of(index)  # type: ignore[misc]
    if first < 0 or last >= content.least:
        return None
    return Sweep(loop, index, EMPTY, first, last)


def _mark_all(
    effects: Effects,
    handle: ArrayHandle,
    indices: np.ndarray,
    allows: Callable[[Any], Any],
    after: int | None,
    check: Check,
) -> None:
    """Checks the marks of several elements, and gives them another unless that is None."""
    content = effects.contents[handle]
    if content.swept is not None:
        content = content.with_traced_marks()
    check(allows(content.marks[indices]), _unexplained)
    if after is not None:
        if content.has_known_marks:
            marks = content.marks.copy()
            marks[indices] = after
        else:
            marks = content.marks.at[indices].set(np.int8(after))
        content = replace(content, marks=marks)
    effects.contents[handle] = content


def _element_dims(effects: Effects, handle: ArrayHandle) -> tuple[int, ...]:
    content = effects.contents[handle]
    if content.buffer is not None:
        return content.buffer.shape[1:]
    if handle.dims is None or not is_fully_defined(handle.dims):
        raise NotCompilable("an array that nothing was written to")
    return tuple(handle.dims)  # type: ignore[arg-type]


def _read(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    from jax import lax

    handle, index, _ = values
    content = _prepared(effects, handle, _element_dims(effects, handle))
    _check_index(effects, handle, index, check)
    if not handle.sums:
        after = CLEARED if handle.clears else None
        _mark(effects, handle, index, partial(_may_be_read, handle), after, check)
    return lax.dynamic_index_in_dim(content.buffer, index, 0, keepdims=False)


def _may_be_read(handle: ArrayHandle, marks: Any) -> Any:
    """Elements may be read if they are written; or empty, but of known shape: then zeros."""
    if handle.alike or is_fully_defined(handle.dims):
        return marks != CLEARED
    return marks == WRITTEN


def _size(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    size = effects.contents[values[0]].size
    return np.int32(_size_of(effects, values[0])) if size is None else size


def _is_whole(indices: np.ndarray, size: int) -> bool:
    return indices.shape == (size,) and bool(np.array_equal(indices, np.arange(size)))


def _gather(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    handle, indices, _ = values
    dims = _element_dims(effects, handle)
    size = _size_of(effects, handle)
    if ((indices < 0) | (indices >= size)).any() or np.unique(indices).size < indices.size:
        raise NotCompilable("indices that repeat or are outside an array")
    content = _prepared(effects, handle, dims)
    whole = _is_whole(indices, size) and content.buffer.shape[0] == size
    if not handle.sums:
        after = CLEARED if handle.clears else None
        _mark_all(effects, handle, indices, partial(_may_be_read, handle), after, check)
    return content.buffer if whole else content.buffer[indices]


def _scatter(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    import jax.numpy as jnp

    handle, indices, value, _ = values
    handle.given = effects.is_given(value)
    value = jnp.asarray(value, handle.dtype)
    _scatter_rows(effects, handle, indices, value, check)
    return np.float32(0)


def _scatter_rows(
    effects: Effects, handle: ArrayHandle, indices: np.ndarray, value: Any, check: Check
) -> None:

    if indices.shape[0] != value.shape[0] or np.unique(indices).size < indices.size:
        raise NotCompilable("indices that do not fit the values")
    if handle.dynamic and indices.size:
        _grow(effects, handle, int(indices.max()))
    size = _size_of(effects, handle)
    if ((indices < 0) | (indices >= size)).any():
        raise NotCompilable("indices outside an array")
    fresh = effects.contents[handle].buffer is None
    whole = _is_whole(indices, size)
    if fresh and whole:
        marks = None if handle.sums else np.full(size, WRITTEN, np.int8)
        _replace(effects, handle, buffer=value, marks=marks)
        return
    content = _prepared(effects, handle, value.shape[1:])
    whole = whole and content.buffer.shape[0] == size
    if handle.sums:
        buffer = content.buffer + value if whole else content.buffer.at[indices].add(value)
        _replace(effects, handle, buffer=buffer)
        return
    _mark_all(effects, handle, indices, lambda marks: marks == EMPTY, WRITTEN, check)
    buffer = value if whole else content.buffer.at[indices].set(value)
    _replace(effects, handle, buffer=buffer)


def _concat(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    handle, flow = values
    dims = _element_dims(effects, handle)
    if not dims:
        raise NotCompilable("elements that cannot be joined")
    size = _size_of(effects, handle)
    joined = _gather(effects, node, [handle, np.arange(size), flow], check)
    lengths = np.full(size, dims[0], np.int64)
    return joined.reshape((size * dims[0], *dims[1:])), lengths


def _split(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    import jax.numpy as jnp

    handle, value, lengths, _ = values
    value = jnp.asarray(value, handle.dtype)
    size = lengths.size
    if not handle.dynamic and size != _size_of(effects, handle):
        raise NotCompilable("pieces that do not fill an array")
    if np.unique(lengths).size != 1:
        raise NotCompilable("pieces of different lengths")
    if lengths.sum() != value.shape[0]:
        raise NotCompilable("pieces that do not add up")
    rows = value.reshape((size, int(lengths[0]), *value.shape[1:]))
    _scatter_rows(effects, handle, np.arange(size), rows, check)
    return np.float32(0)


def _gradient(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    handle, _, *prepended = values
    further = tuple(int(d) for d in prepended[0]) if prepended else ()
    source = node.attrs["source"]
    found = handle.gradients.get(source)
    if found is None:
        dims = None if handle.dims is None else (*further, *handle.dims)
        found = ArrayHandle(handle.dtype, dims, False, sums=True)
        handle.gradients[source] = found
    if found not in effects.contents:
        size = _size_of(effects, handle)
        effects.contents[found] = ArrayContent(size, size)
        content = effects.contents[handle]
        if content.buffer is not None:
            _prepared(effects, found, (*further, *content.buffer.shape[1:]))
    return found, np.float32(0)


def _nothing(effects: Effects, node: Node, values: list[Any], check: Check) -> Any:
    return ()


_EVALUATE: dict[str, Callable[[Effects, Node, list[Any], Check], Any]] = {
    "StackV2": _make_stack,
    "StackPushV2": _push,
    "StackPopV2": _pop,
    "_StackPopJoined": _pop_joined,
    "StackCloseV2": _nothing,
    "TensorArrayV3": _make_array,
    "TensorArrayWriteV3": _write,
    "TensorArrayReadV3": _read,
    "TensorArraySizeV3": _size,
    "TensorArrayGatherV3": _gather,
    "TensorArrayScatterV3": _scatter,
    "TensorArrayConcatV3": _concat,
    "TensorArraySplitV3": _split,
    "TensorArrayGradV3": _gradient,
    "TensorArrayGradWithShape": _gradient,
    "TensorArrayCloseV3": _nothing,
}
