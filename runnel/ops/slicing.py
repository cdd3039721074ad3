"""A box out of a tensor: ``tf.slice``.

A slice of known size compiles even when its place is data.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import at_run_time
from runnel.ops.array_shape import shape as shape_of
from runnel.ops.fill import zeros_like
from runnel.ops.joining import stack
from runnel.ops.strided_slice import elements_of

slice_op = register_op(
    "Slice",
    inputs="input: T, begin: Index, size: Index",
    outputs="output: T",
    attrs=["T: type", "Index: {int32, int64}"],
    static_inputs=("begin", "size"),
)
update_slice_op = register_op(
    "XlaDynamicUpdateSlice",
    inputs="input: T, update: T, indices: Tindices",
    outputs="output: T",
    attrs=["T: type", "Tindices: {int32, int64}"],
)


@slice_op.needs_static
def _(op):
    sizes = constant_value(op.inputs[2])
    return ("size",) if sizes is not None and -1 not in sizes else ("begin", "size")


@slice_op.shape
def _(x, begin, size):
    starts, sizes = elements_of(begin), elements_of(size)
    if sizes is None:
        return x.dims if x.dims is None else (None,) * len(x.dims)
    if x.dims is None:
        return tuple(None if s is None or s < 0 else s for s in sizes)
    if len(sizes) != len(x.dims) or (starts is not None and len(starts) != len(sizes)):
        raise ValueError(
            f"begin and size must have as many elements as the rank of {format_dims(x.dims)}"
        )
    out: list[int | None] = []
    for dimension, (dim, length) in enumerate(zip(x.dims, sizes, strict=True)):
        start = None if starts is None else starts[dimension]
        if length == -1:
            length = None if dim is None or start is None else dim - start
        if start is not None and length is not None and dim is not None:
            _require_part(start, length, dim, dimension)
        out.append(length)
    return tuple(out)


def _require_part(start: int, length: int, size: int, dimension: int) -> None:
    if not 0 <= start <= size:
        raise ValueError(f"Expected begin[{dimension}] in [0, {size}], but got {start}")
    if not 0 <= length <= size - start:
        raise ValueError(f"Expected size[{dimension}] in [0, {size - start}], but got {length}")


@slice_op.kernel
def _(xp, x, begin, size, *, check):
    sizes = size.tolist()
    if len(sizes) != x.ndim:
        raise InvalidArgumentError(None, None, f"size has {len(sizes)} elements for rank {x.ndim}")
    if isinstance(begin, np.ndarray):
        starts = begin.tolist()
        for d, (start, dim) in enumerate(zip(starts, x.shape, strict=True)):
            if sizes[d] == -1:
                sizes[d] = dim - start
            at_run_time(_require_part, start, sizes[d], dim, d)
        where = [
            builtins.slice(start, start + length)
            for start, length in zip(starts, sizes, strict=True)
        ]
        return x[(*where, ...)]
    for d, (length, dim) in enumerate(zip(sizes, x.shape, strict=True)):
        at_run_time(_require_part, 0, length, dim, d)
        check((begin[d] >= 0) & (begin[d] <= dim - length), None)
    from jax import lax

    return lax.dynamic_slice(xp.asarray(x), [begin[d] for d in range(x.ndim)], sizes)


@slice_op.gradient
def _(op, grad):
    x, begin, _ = op.inputs
    if constant_value(begin) is None:
        return [update_slice_op(zeros_like(x), grad, begin), None, None]
    after = shape_of(x, out_type=begin.dtype) - shape_of(grad, out_type=begin.dtype) - begin
    return [get_op_def("Pad")(grad, stack([begin, after], axis=1)), None, None]


@update_slice_op.shape
def _(x, update, indices):
    return x.dims


@update_slice_op.kernel
def _(xp, x, update, indices):
    if xp is np:
        out = np.array(x)
        room = np.subtract(x.shape, update.shape)
        starts = np.clip(indices, 0, room)
        out[tuple(builtins.slice(s, s + n) for s, n in zip(starts, update.shape))] = update
        return out
    from jax import lax

    return lax.dynamic_update_slice(x, update, [indices[d] for d in range(x.ndim)])


@update_slice_op.gradient
def _(op, grad):
    _, update, indices = op.inputs
    covered = update_slice_op(grad, zeros_like(update), indices)
    return [covered, slice_op(grad, indices, shape_of(update, out_type=indices.dtype)), None]


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:  # noqa: A001
    """The part of ``input_`` that starts at ``begin`` and has shape ``size`` (-1: to the end).

    Example:
        >>> tf.slice(tf.reshape(tf.range(6), [2, 3]), [0, 1], [2, -1])  # [[1, 2], [4, 5]]
    """
    return slice_op(input_, begin, size, name=name)
