"""Reversing the order of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import merge_dims
from runnel.ops.array_shape import at_run_time, resolve_axis

_REVERSIBLE = (
    "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, "
    "double, complex64, complex128, string}"
)

reverse_op = register_op(
    "ReverseV2",
    inputs="tensor: T, axis: Tidx",
    outputs="output: T",
    attrs=["Tidx: {int32, int64} = DT_INT32", _REVERSIBLE],
    static_inputs=("axis",),
)
reverse_v1_op = register_op(
    "Reverse",
    inputs="tensor: T, dims: bool",
    outputs="output: T",
    attrs=_REVERSIBLE,
    static_inputs=("dims",),
)


def _axes(axis: list[int], rank: int) -> tuple[int, ...]:
    axes = [resolve_axis(a, rank) for a in axis]
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis {axis} names a dimension twice")
    return tuple(axes)


@reverse_op.shape
def _(x, axis):
    known = constant_value(axis)
    if known is not None and x.dims is not None:
        _axes(known.tolist(), len(x.dims))
    return x.dims


@reverse_op.kernel
def _(xp, x, axis):
    axes = at_run_time(_axes, axis.tolist(), x.ndim)
    return xp.flip(x, axes) if axes else x


@reverse_op.gradient
def _(op, grad):
    return [reverse_op(grad, op.inputs[1]), None]


@reverse_v1_op.shape
def _(x, dims):
    return x.dims


@reverse_v1_op.kernel
def _(xp, x, dims):
    axes = tuple(np.flatnonzero(dims).tolist())
    return xp.flip(x, axes) if axes else x


@reverse_v1_op.gradient
def _(op, grad):
    return [reverse_v1_op(grad, op.inputs[1]), None]


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """``tensor`` with the order reversed along the dimensions in ``axis``.

    Example:
        >>> tf.reverse([[1, 2], [3, 4]], [1])  # [[2, 1], [4, 3]]
    """
    return reverse_op(tensor, axis, name=name)


reverse_v2 = reverse

reverse_sequence_op = register_op(
    "ReverseSequence",
    inputs="input: T, seq_lengths: Tlen",
    outputs="output: T",
    attrs=["seq_dim: int", "batch_dim: int = 0", "T: type", "Tlen: {int32, int64} = DT_INT64"],
)


@reverse_sequence_op.shape
def _(x, seq_lengths, *, seq_dim, batch_dim):
    if x.dims is None:
        return None
    rank = len(x.dims)
    if not (0 <= seq_dim < rank and 0 <= batch_dim < rank and seq_dim != batch_dim):
        raise ValueError(
            f"seq_dim ({seq_dim}) and batch_dim ({batch_dim}) must be two different dimensions of "
            f"a tensor of rank {rank}"
        )
    if seq_lengths.dims is None:
        return x.dims
    merge_dims(seq_lengths.dims, (x.dims[batch_dim],))
    return (
        *x.dims[:batch_dim],
        seq_lengths.dims[0] if x.dims[batch_dim] is None else x.dims[batch_dim],
        *x.dims[batch_dim + 1 :],
    )


@reverse_sequence_op.kernel
def _(xp, x, seq_lengths, *, seq_dim, batch_dim, check):
    length = x.shape[seq_dim]
    check(
        xp.all((seq_lengths >= 0) & (seq_lengths <= length)),
        lambda: f"seq_lengths {seq_lengths.tolist()} must be between 0 and {length}",
    )
    steps = xp.arange(length)
    lengths = seq_lengths.astype(steps.dtype)[:, None]
    source = xp.where(steps < lengths, lengths - 1 - steps, steps)  # (batch, time)
    if batch_dim > seq_dim:
        source = source.T
    shape = [x.shape[d] if d in (batch_dim, seq_dim) else 1 for d in range(x.ndim)]
    return xp.take_along_axis(x, source.reshape(shape), axis=seq_dim)


@reverse_sequence_op.gradient
def _(op, grad):
    seq_dim, batch_dim = op.attrs["seq_dim"], op.attrs["batch_dim"]
    return [
        reverse_sequence_op(grad, op.inputs[1], seq_dim=seq_dim, batch_dim=batch_dim),
        None,
    ]


def reverse_sequence(
    input: Any,  # noqa: A002
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """For each element of a batch, its first ``seq_lengths[i]`` steps in reverse.

    Example:
        >>> tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1)
        # [[2, 1, 3], [6, 5, 4]]
    """
    seq = seq_axis if seq_axis is not None else seq_dim
    batch = batch_axis if batch_axis is not None else batch_dim
    if seq is None:
        raise ValueError("reverse_sequence needs seq_axis, the dimension of the steps")
    return reverse_sequence_op(input, seq_lengths, seq_dim=seq, batch_dim=batch or 0, name=name)
