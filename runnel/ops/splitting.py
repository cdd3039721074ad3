"""Taking a tensor apart along one dimension: split and unstack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.random_seed import skip_op_ids
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.array_shape import at_run_time, resolve_axis
from runnel.ops.fill import zeros_like
from runnel.ops.joining import concat, stack

split_op = register_op(
    "Split",
    inputs="split_dim: int32, value: T",
    outputs="output: num_split * T",
    attrs=["num_split: int >= 1", "T: type"],
    static_inputs=("split_dim",),
)
split_v_op = register_op(
    "SplitV",
    inputs="value: T, size_splits: Tlen, split_dim: int32",
    outputs="output: num_split * T",
    attrs=["num_split: int >= 1", "T: type", "Tlen: {int8, int32, int64} = DT_INT64"],
    static_inputs=("size_splits", "split_dim"),
)


def _equal_part(size: int, parts: int, axis: int) -> int:
    if size % parts:
        raise ValueError(
            f"Dimension {axis} of size {size} cannot be split into {parts} equal parts"
        )
    return size // parts


def _part_sizes(size: int | None, sizes: list[int], axis: int) -> list[int | None]:
    """The sizes of the parts; at most one may be -1, which takes what is left."""
    inferred = [i for i, s in enumerate(sizes) if s == -1]
    if len(inferred) > 1 or min(sizes, default=0) < -1:
        raise ValueError(f"size_splits must be sizes, with at most one -1, not {sizes}")
    rest = sum(s for s in sizes if s != -1)
    if size is not None and (rest > size or (not inferred and rest != size)):
        raise ValueError(f"size_splits {sizes} do not add up to dimension {axis}, of size {size}")
    left = None if size is None else size - rest
    return [left if s == -1 else s for s in sizes]


def _with(dims: tuple[int | None, ...], axis: int, size: int | None) -> Dims:
    return (*dims[:axis], size, *dims[axis + 1 :])


@split_op.shape
def _(split_dim, value, *, num_split):
    dims = value.dims
    if dims is None:
        return [None] * num_split
    axis = constant_value(split_dim)
    if axis is None:
        return [(None,) * len(dims)] * num_split
    at = resolve_axis(axis, len(dims), "split_dim")
    size = dims[at]
    part = None if size is None else _equal_part(size, num_split, at)
    return [_with(dims, at, part)] * num_split


@split_op.kernel
def _(xp, split_dim, value, *, num_split):
    axis = at_run_time(resolve_axis, split_dim, value.ndim, "split_dim")
    size = at_run_time(_equal_part, value.shape[axis], num_split, axis)
    return _parts(xp, value, [size] * num_split, axis)


def _parts(xp: Any, value: Any, sizes: Sequence[int], axis: int) -> list[Any]:
    """Parts of these sizes, which make up ``value``."""
    if xp is not np:
        return xp.split(value, np.cumsum(sizes)[:-1].tolist(), axis)
    # NumPy's split takes five times as long.
    parts, start = [], 0
    if axis == value.ndim - 1:
        for size in sizes:
            parts.append(value[..., start : start + size])
            start += size
        return parts
    before = (slice(None),) * axis
    for size in sizes:
        parts.append(value[(*before, slice(start, start + size))])
        start += size
    return parts


def _join(op: Any, grads: tuple[Any, ...], axis: Tensor) -> Tensor:
    """The gradients of the parts, zeros for parts without one, together again."""
    parts = [zeros_like(o) if g is None else g for o, g in zip(op.outputs, grads, strict=True)]
    return concat(parts, axis)


@split_op.gradient
def _(op, *grads):
    return [None, _join(op, grads, op.inputs[0])]


@split_v_op.shape
def _(value, size_splits, split_dim, *, num_split):
    dims = value.dims
    if dims is None:
        return [None] * num_split
    axis, sizes = constant_value(split_dim), constant_value(size_splits)
    if size_splits.dims not in (None, (None,), (num_split,)):
        raise ValueError(f"size_splits must hold {num_split} sizes")
    if axis is None:
        return [(None,) * len(dims)] * num_split
    at = resolve_axis(axis, len(dims), "split_dim")
    if sizes is None:
        return [_with(dims, at, None if num_split > 1 else dims[at])] * num_split
    return [_with(dims, at, size) for size in _part_sizes(dims[at], sizes.tolist(), at)]


@split_v_op.kernel
def _(xp, value, size_splits, split_dim):
    axis = at_run_time(resolve_axis, split_dim, value.ndim, "split_dim")
    sizes = at_run_time(_part_sizes, value.shape[axis], size_splits.tolist(), axis)
    return _parts(xp, value, sizes, axis)


@split_v_op.gradient
def _(op, *grads):
    return [_join(op, grads, op.inputs[2]), None, None]


def split(
    value: Any,
    num_or_size_splits: Any,
    axis: Any = 0,
    num: int | None = None,
    name: str = "split",
) -> list[Tensor]:
    """``value`` cut along ``axis`` into equal parts (an integer) or parts of given sizes.

    Example:
        >>> tf.split(tf.zeros([5, 30]), [4, 15, 11], 1)  # shapes [5, 4], [5, 15], [5, 11]
        >>> tf.split(tf.zeros([5, 30]), 3, axis=1)  # three of shape [5, 10]
    """
    if isinstance(num_or_size_splits, int | np.integer) or hasattr(num_or_size_splits, "value"):
        parts = int(getattr(num_or_size_splits, "value", num_or_size_splits))
        skip_op_ids(1)  # the number, as a tensor
        return split_op(axis, value, num_split=parts, name=name)
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes.dims == ():
        raise ValueError(
            "A tensor that holds the number of parts is not supported: give a Python integer"
        )
    if num is None:
        num = sizes.dims[0] if sizes.dims is not None else None
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {sizes.shape}")
    return split_v_op(value, sizes, axis, num_split=num, name=name)


unpack_op = register_op(
    "Unpack",
    inputs="value: T",
    outputs="output: num * T",
    attrs=["num: int >= 0", "T: type", "axis: int = 0"],
)


@unpack_op.shape
def _(value, *, num, axis):
    dims = value.dims
    if dims is None:
        return [None] * num
    at = resolve_axis(axis, len(dims))
    if dims[at] not in (None, num):
        raise ValueError(f"Dimension {at} of {format_dims(dims)} must be {num}, to unstack {num}")
    return [dims[:at] + dims[at + 1 :]] * num


@unpack_op.kernel
def _(xp, value, *, num, axis):
    at = at_run_time(resolve_axis, axis, value.ndim)
    if value.shape[at] != num:
        raise InvalidArgumentError(
            None,
            None,
            f"Dimension {at} of {format_dims(value.shape)} must be {num}, to unstack {num}",
        )
    before = (slice(None),) * at
    return [value[(*before, i, ...)] for i in range(num)]


@unpack_op.gradient
def _(op, *grads):
    parts = [zeros_like(o) if g is None else g for o, g in zip(op.outputs, grads, strict=True)]
    return stack(parts, axis=op.attrs["axis"])


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices of ``value`` along ``axis``, as a list; the opposite of ``stack``.

    Example:
        >>> tf.unstack([[1, 2], [3, 4]])  # [[1, 2], [3, 4]], two tensors
    """
    x = convert_to_tensor(value)
    if num is None:
        if x.dims is None:
            raise ValueError(f"Cannot infer argument `num` from the unknown shape of {x.name}")
        num = x.dims[resolve_axis(axis, len(x.dims))]
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {x.shape}")
    return unpack_op(x, num=num, axis=axis, name=name)
