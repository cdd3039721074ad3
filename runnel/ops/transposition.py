"""Reordering dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import OpDef, get_op_def, register_op
from runnel.graph.shape_inference import unchanged
from runnel.graph.shapes import Dims
from runnel.ops.array_shape import at_run_time, resolve_axis
from runnel.ops.array_shape import rank as rank_of


def _permutation(perm: list[int], rank: int) -> list[int]:
    axes = [resolve_axis(axis, rank, "perm") for axis in perm]
    if sorted(axes) != list(range(rank)):
        raise ValueError(f"perm {perm} is not a permutation of the {rank} dimensions")
    return axes


def _transposed_dims(x: Tensor, perm: Tensor) -> Dims:
    order = constant_value(perm)
    rank = len(x.dims) if x.dims is not None else None
    if rank is None and perm.dims is not None:
        rank = perm.dims[0]
    if rank is None:
        return None
    if order is None or x.dims is None:
        return (None,) * rank
    return tuple(x.dims[axis] for axis in _permutation(order.tolist(), rank))


def _transposes(name: str) -> OpDef:
    op_def = register_op(
        name,
        inputs="x: T, perm: Tperm",
        outputs="y: T",
        attrs=["T: type", "Tperm: {int32, int64} = DT_INT32"],
        static_inputs=("perm",),
    )
    op_def.shape(_transposed_dims)
    return op_def


transpose_op = _transposes("Transpose")
conjugate_transpose_op = _transposes("ConjugateTranspose")
invert_permutation_op = register_op(
    "InvertPermutation",
    inputs="x: T",
    outputs="y: T",
    attrs="T: {int32, int64} = DT_INT32",
    differentiable=False,
)
invert_permutation_op.shape(unchanged)


@transpose_op.kernel
def _(xp, x, perm):
    return x.transpose(at_run_time(_permutation, perm.tolist(), x.ndim))


@conjugate_transpose_op.kernel
def _(xp, x, perm):
    y = x.transpose(at_run_time(_permutation, perm.tolist(), x.ndim))
    return xp.conj(y) if y.dtype.kind == "c" else y


def _inverse(perm: Tensor) -> Any:
    known = constant_value(perm)
    if known is None:
        return invert_permutation_op(perm)
    order = np.where(known < 0, known + known.size, known)
    return np.argsort(order).astype(known.dtype)


@transpose_op.gradient
def _(op, grad):
    return [transpose_op(grad, _inverse(op.inputs[1])), None]


@conjugate_transpose_op.gradient
def _(op, grad):
    return [conjugate_transpose_op(grad, _inverse(op.inputs[1])), None]


@invert_permutation_op.kernel
def _(xp, x, *, check):
    order = xp.argsort(x).astype(x.dtype)
    if x.ndim != 1:
        raise InvalidArgumentError(None, None, f"A permutation is a vector, not of rank {x.ndim}")
    holds = xp.all(x[order] == xp.arange(x.shape[0], dtype=x.dtype))
    check(holds, lambda: f"{x.tolist()} is not a permutation of 0 to {x.shape[0] - 1}")
    return order


def transpose(
    a: Any, perm: Any = None, name: str | None = "transpose", conjugate: bool = False
) -> Tensor:
    """``a`` with its dimensions in the order ``perm``, or reversed.

    Example:
        >>> tf.transpose([[1, 2, 3], [4, 5, 6]])  # [[1, 4], [2, 5], [3, 6]]
    """
    with name_scope(name, "transpose", [a]) as scope:
        x = convert_to_tensor(a, name="a")
        if perm is None:
            if x.dims is not None:
                perm = np.arange(len(x.dims) - 1, -1, -1, dtype=np.int32)
            else:
                count = rank_of(x)
                perm = (count - 1) - get_op_def("Range")(0, count, 1)
        op_def = conjugate_transpose_op if conjugate and x.dtype.is_complex else transpose_op
        return op_def(x, perm, name=scope)


def matrix_transpose(
    a: Any, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """``a`` with its last two dimensions swapped.

    Example:
        >>> tf.linalg.matrix_transpose(tf.zeros([8, 2, 3]))  # shape [8, 3, 2]
    """
    with name_scope(name, "matrix_transpose", [a]):
        x = convert_to_tensor(a, name="a")
        if x.dims is not None:
            if len(x.dims) < 2:
                raise ValueError(
                    f"Argument 'a' should be a (batch) matrix, with rank >= 2. Found: {x.shape}"
                )
            leading = list(range(len(x.dims) - 2))
            perm: Any = [*leading, len(x.dims) - 1, len(x.dims) - 2]
        else:
            from runnel.ops.joining import concat, stack

            count = rank_of(x)
            swapped = stack([count - 1, count - 2])
            perm = concat([get_op_def("Range")(0, count - 2, 1), swapped], 0)
        return transpose(x, perm=perm, conjugate=conjugate)


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation that undoes ``x``: ``y[x[i]] == i``.

    Example:
        >>> tf.math.invert_permutation([3, 4, 0, 2, 1])  # [2, 4, 3, 0, 1]
    """
    return invert_permutation_op(x, name=name)
