"""The QR decomposition of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.band import matrix_band_part
from runnel.ops.blas_threads import with_threads_for
from runnel.ops.linear_algebra import matrix_triangular_solve
from runnel.ops.matmul import matmul
from runnel.ops.transposition import matrix_transpose

qr_op = register_op(
    "Qr",
    inputs="input: T",
    outputs="q: T, r: T",
    attrs=["full_matrices: bool = false", "T: {double, float, half, complex64, complex128}"],
)


@qr_op.shape
def _(matrix, *, full_matrices):
    dims = matrix.dims
    if dims is None:
        return [None, None]
    if len(dims) < 2:
        raise ValueError(f"A matrix is needed, not a tensor of rank {len(dims)}")
    *batch, rows, columns = dims
    if rows is None or columns is None:
        inner = rows if full_matrices else None
    else:
        inner = rows if full_matrices else min(rows, columns)
    return [(*batch, rows, inner), (*batch, inner, columns)]


@qr_op.kernel
def _(xp, matrix, *, full_matrices):
    wide = matrix.astype("float32") if matrix.dtype == "float16" else matrix
    mode = "complete" if full_matrices else "reduced"
    if xp is np:
        q, r = with_threads_for(wide.size * wide.shape[-1], np.linalg.qr, wide, mode)
    else:
        q, r = xp.linalg.qr(wide, mode=mode)
    return q.astype(matrix.dtype), r.astype(matrix.dtype)


@qr_op.gradient
def _(op, grad_q, grad_r):
    q, r = op.outputs
    rows, columns = (None, None) if r.dims is None else r.dims[-2:]
    if q.dtype.is_complex or rows is None or rows != columns:
        raise NotImplementedError(
            "The gradient of tf.qr is known for real matrices of known size that have no more "
            "columns than rows, with full_matrices=False"
        )
    turned_q = matmul(q, grad_q, adjoint_a=True)
    turned_r = matmul(r, grad_r, adjoint_b=True)
    both = turned_q - matrix_transpose(turned_q) + turned_r - matrix_transpose(turned_r)
    inside = grad_r + _right_solved(matrix_band_part(both, -1, 0), r)
    return matmul(q, inside) + _right_solved(grad_q - matmul(q, turned_q), r)


def _right_solved(x: Tensor, r: Tensor) -> Tensor:
    """``x`` times the inverse of the transpose of ``r``."""
    return matrix_transpose(matrix_triangular_solve(r, matrix_transpose(x), lower=False))


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:  # noqa: A002
    """``(q, r)``: an orthogonal and an upper triangular matrix whose product is ``input``.

    Leading dimensions are a batch. ``full_matrices`` makes ``q`` square.

    Example:
        >>> q, r = tf.linalg.qr(tf.random_normal([4, 3]))
    """
    q, r = qr_op(input, full_matrices=full_matrices, name=name)
    return q, r
