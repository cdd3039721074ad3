"""The LU decomposition of square matrices, with rows exchanged for the largest pivots."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import as_dtype
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.blas_threads import with_threads_for
from runnel.ops.half_precision import narrow, widen
from runnel.ops.linear_algebra import square_dims

lu_op = register_op(
    "Lu",
    inputs="input: T",
    outputs="lu: T, p: output_idx_type",
    attrs=[
        "T: {double, float, half, complex64, complex128}",
        "output_idx_type: {int32, int64} = DT_INT32",
    ],
)


@lu_op.shape
def _(x, *, output_idx_type):
    dims = square_dims(x)
    if dims is None:
        return [None, None]
    size = dims[-1] if dims[-1] is not None else dims[-2]
    return [(*dims[:-2], size, size), (*dims[:-2], size)]


@lu_op.kernel
def _(xp, x, *, output_idx_type, check):
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Input matrices must be square, not {list(x.shape)}")
    wide = widen(x)
    if xp is np:
        packed, order = with_threads_for(wide.size * wide.shape[-1], _interpreted, wide)
    else:
        import jax

        packed, _, order = jax.lax.linalg.lu(wide)
    pivots = xp.diagonal(packed, axis1=-2, axis2=-1)
    check((xp.abs(pivots) > 0).all(), lambda: "Input is not invertible.")
    return narrow(packed, x.dtype), order.astype(output_idx_type.np_dtype)


def _interpreted(x: Any) -> tuple[Any, Any]:
    """Both factors in one array, and the rows in their new order."""
    import scipy.linalg

    if not x.size:
        return x, np.zeros(x.shape[:-1], np.int32)
    places, lower, upper = scipy.linalg.lu(x, p_indices=True, check_finite=False)
    return np.tril(lower, -1) + upper, np.argsort(places, axis=-1)


def lu(
    input: Any,  # noqa: A002
    output_idx_type: Any = dtypes.int32,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """``(lu, p)``: the triangular factors of each matrix, and the order of its rows for them.

    ``lu`` has the upper factor on and above its diagonal. The lower one is below, with ones for a
    diagonal that are not stored. Their product is ``tf.gather(input, p)``. A singular matrix is an
    error. As in TensorFlow, there is no gradient.

    Example:
        >>> lu, p = tf.linalg.lu([[0.0, 2.0], [4.0, 6.0]])  # [[4, 6], [0, 2]] and [1, 0]
    """
    packed, order = lu_op(input, output_idx_type=as_dtype(output_idx_type), name=name)
    return packed, order
