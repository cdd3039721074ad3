"""Norms, traces and vector products."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import merge_dims
from runnel.ops.elementwise import abs as absolute
from runnel.ops.elementwise import sqrt
from runnel.ops.reduce_functions import one_of, reduce_max, reduce_sum

cross_op = register_op(
    "Cross", inputs="a: T, b: T", outputs="product: T", attrs="T: realnumbertype"
)


@cross_op.shape
def _(a, b):
    dims = merge_dims(a.dims, b.dims)
    if dims is not None and (not dims or dims[-1] not in (None, 3)):
        raise ValueError("The last dimension must be 3")
    return dims


@cross_op.kernel
def _(xp, a, b):
    if a.shape != b.shape or not a.shape or a.shape[-1] != 3:
        raise ValueError(
            f"Cross takes vectors of 3, of one shape, not {list(a.shape)} and {list(b.shape)}"
        )
    a0, a1, a2 = (a[..., i] for i in range(3))
    b0, b1, b2 = (b[..., i] for i in range(3))
    return xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


@cross_op.gradient
def _(op, grad):
    a, b = op.inputs
    return [cross_op(b, grad), cross_op(grad, a)]


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The vector product of 3-element vectors along the last axis."""
    return cross_op(a, b, name=name)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix.

    Example:
        >>> tf.Session().run(tf.trace([[1, 2], [3, 4]]))
        5
    """
    with name_scope(name, "Trace", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return get_op_def("Einsum")([x], equation="...ii->...", name=scope)


def norm(
    tensor: Any,
    ord: Any = "euclidean",  # noqa: A002 (TensorFlow's name)
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """A norm of vectors along ``axis``, or of matrices when ``axis`` is a pair.

    ``ord`` is "euclidean", "fro", 1, 2, any positive number or ``np.inf``; for matrices
    "euclidean", "fro", 1 (largest column sum) or ``np.inf`` (largest row sum). Without
    ``axis`` all elements are one vector.

    Example:
        >>> tf.Session().run(tf.norm([3.0, 4.0]))
        5.0
    """
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    is_matrix = isinstance(axis, list | tuple) and len(axis) == 2
    if isinstance(axis, list | tuple) and len(axis) > 2:
        raise ValueError(f"axis must be None, an integer, or a pair of them, not {axis}")
    if is_matrix and axis[0] == axis[1]:
        raise ValueError(f"axis must be two different axes, not {axis}")
    supported = ("euclidean", "fro", 1, np.inf) if is_matrix else ("euclidean", "fro")
    is_power = not is_matrix and not isinstance(ord, str) and ord > 0
    if ord not in supported and not is_power:
        raise ValueError(
            f"ord is {ord!r}, but for a {'matrix' if is_matrix else 'vector'} norm must be one "
            f"of {supported}" + ("" if is_matrix else " or a positive number")
        )
    with name_scope(name, "norm", [tensor]):
        x = convert_to_tensor(tensor)
        if ord in ("fro", "euclidean", 2, 2.0) and not (is_matrix and ord in (2, 2.0)):
            real = absolute(x) if x.dtype.is_complex else x
            return sqrt(reduce_sum(real * real, axis, keepdims=keep))
        size = absolute(x)
        if is_matrix:
            inner, outer = axis if ord == 1 else (axis[1], axis[0])
            total = reduce_sum(size, inner, keepdims=True)
            result = reduce_max(total, [inner, outer], keepdims=True)
            if keep:
                return result
            return reduce_sum(result, list(axis))
        if ord == np.inf:
            return reduce_max(size, axis, keepdims=keep)
        if ord == 1:
            return reduce_sum(size, axis, keepdims=keep)
        return reduce_sum(size**ord, axis, keepdims=keep) ** (1.0 / ord)
