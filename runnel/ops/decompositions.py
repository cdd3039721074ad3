"""Eigenvalues of self-adjoint matrices and singular values, of (stacks of) matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import format_dims
from runnel.ops.array_shape import expand_dims
from runnel.ops.band import matrix_band_part
from runnel.ops.blas_threads import with_threads_for
from runnel.ops.complex_numbers import real
from runnel.ops.constants import constant
from runnel.ops.diagonal import matrix_diag, matrix_diag_part, matrix_set_diag
from runnel.ops.elementwise import reciprocal
from runnel.ops.fill import zeros_like
from runnel.ops.half_precision import narrow, widen
from runnel.ops.matmul import matmul
from runnel.ops.selection import where
from runnel.ops.transposition import matrix_transpose

_TYPES = "T: {double, float, half, complex64, complex128}"


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The matrices transposed, and conjugated where they are complex."""
    return matrix_transpose(matrix, conjugate=True, name=name or "adjoint")


def _matrix_dims(x: Tensor) -> Any:
    if x.dims is not None and len(x.dims) < 2:
        raise ValueError(f"Shape must be at least rank 2 but is {format_dims(x.dims)}")
    return x.dims


def _inverse_differences(values: Tensor) -> Tensor:
    """1 / (values[j] - values[i]) for each pair, and 0 where they are equal."""
    differences = expand_dims(values, -2) - expand_dims(values, -1)
    equal = differences * differences < constant(1e-40, values.dtype)
    inverse = reciprocal(where(equal, zeros_like(differences) + 1.0, differences))
    return where(equal, zeros_like(differences), inverse)


# Eigenvalues ------------------------------------------------------------------------------------

self_adjoint_eig_op = register_op(
    "SelfAdjointEigV2",
    inputs="input: T",
    outputs="e: T, v: T",
    attrs=["compute_v: bool = true", _TYPES],
)


@self_adjoint_eig_op.shape
def _(x, *, compute_v):
    dims = _matrix_dims(x)
    if dims is None:
        return [None, None if compute_v else (0,)]
    *batch, rows, columns = dims
    if rows is not None and columns is not None and rows != columns:
        raise ValueError(f"The matrices must be square, not {rows} by {columns}")
    size = rows if rows is not None else columns
    return [(*batch, size), (*batch, size, size) if compute_v else (0,)]


@self_adjoint_eig_op.kernel
def _(xp, x, *, compute_v):
    wide = widen(x)
    nothing = xp.zeros((0,), x.dtype)
    work = wide.size * wide.shape[-1]
    if not compute_v:
        if xp is np:
            values = with_threads_for(work, np.linalg.eigvalsh, wide)
        else:
            values = xp.linalg.eigvalsh(wide, symmetrize_input=False)
        return narrow(values, x.dtype), nothing
    if xp is np:
        values, vectors = with_threads_for(work, np.linalg.eigh, wide)
    else:
        values, vectors = xp.linalg.eigh(wide, symmetrize_input=False)
    return narrow(values, x.dtype), narrow(vectors, x.dtype)


@self_adjoint_eig_op.gradient
def _(op, grad_values, grad_vectors):
    values, vectors = op.outputs
    if op.attrs["compute_v"]:
        turned = matmul(vectors, grad_vectors, adjoint_a=True)
        inner = matrix_diag(grad_values) + _inverse_differences(values) * turned
    else:
        _, vectors = self_adjoint_eig_op(op.inputs[0])
        inner = matrix_diag(grad_values)
    whole = matmul(vectors, matmul(inner, vectors, adjoint_b=True))
    # Only the lower triangle was read: it has the gradient of both.
    lower = matrix_band_part(whole + adjoint(whole), -1, 0)
    return matrix_set_diag(lower, constant(0.5, lower.dtype) * matrix_diag_part(lower))


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """``(e, v)``: the eigenvalues in ascending order, and the eigenvectors as columns.

    Leading dimensions are a batch. Only the lower triangles are read.

    Example:
        >>> e, v = tf.self_adjoint_eig([[2.0, 1.0], [1.0, 2.0]])
    """
    values, vectors = self_adjoint_eig_op(tensor, name=name)
    return values, vectors


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues in ascending order."""
    return self_adjoint_eig_op(tensor, compute_v=False, name=name)[0]


# Singular values --------------------------------------------------------------------------------

svd_op = register_op(
    "Svd",
    inputs="input: T",
    outputs="s: T, u: T, v: T",
    attrs=["compute_uv: bool = true", "full_matrices: bool = false", _TYPES],
)


@svd_op.shape
def _(x, *, compute_uv, full_matrices):
    dims = _matrix_dims(x)
    if dims is None:
        return [None, None, None] if compute_uv else [None, (0,), (0,)]
    *batch, rows, columns = dims
    least = None if rows is None or columns is None else min(rows, columns)
    values = (*batch, least)
    if not compute_uv:
        return [values, (0,), (0,)]
    left, right = (rows, columns) if full_matrices else (least, least)
    return [values, (*batch, rows, left), (*batch, columns, right)]


@svd_op.kernel
def _(xp, x, *, compute_uv, full_matrices):
    wide = widen(x)

    def compute() -> Any:
        return xp.linalg.svd(wide, full_matrices=full_matrices, compute_uv=compute_uv)

    found = with_threads_for(wide.size * min(wide.shape[-2:]), compute) if xp is np else compute()
    if not compute_uv:
        nothing = xp.zeros((0,), x.dtype)
        return narrow(found, x.dtype), nothing, nothing
    u, values, adjoint_v = found
    flipped = xp.swapaxes(adjoint_v, -1, -2)
    v = xp.conjugate(flipped) if x.dtype.kind == "c" else flipped
    return narrow(values, x.dtype), narrow(u, x.dtype), narrow(v, x.dtype)


@svd_op.gradient
def _(op, grad_s, grad_u, grad_v):
    x = op.inputs[0]
    if x.dtype.is_complex:
        raise NotImplementedError("Singular values of complex matrices have no gradient")
    if not op.attrs["compute_uv"]:
        _, u, v = svd_op(x)
        return matmul(u, matmul(matrix_diag(grad_s), v, adjoint_b=True))
    rows, columns = (None, None) if x.dims is None else x.dims[-2:]
    if op.attrs["full_matrices"] and (rows is None or rows != columns):
        raise NotImplementedError(
            "The gradient of tf.svd with full_matrices=True needs square matrices of known size; "
            "full_matrices=False has one for all"
        )
    s, u, v = op.outputs
    factor = _inverse_differences(s * s)
    values = matrix_diag(s)
    turned_u = matmul(u, grad_u, adjoint_a=True)
    turned_v = matmul(v, grad_v, adjoint_a=True)
    inner = matrix_diag(grad_s)
    inner += matmul(factor * (turned_u - adjoint(turned_u)), values)
    inner += matmul(values, factor * (turned_v - adjoint(turned_v)))
    found = matmul(u, matmul(inner, v, adjoint_b=True))
    # What the columns of u and v move out of the space that they span.
    inverse = matrix_diag(reciprocal(s))
    if rows is None or columns is None or rows > columns:
        outside = grad_u - matmul(u, turned_u)
        found += matmul(outside, matmul(inverse, v, adjoint_b=True))
    if rows is None or columns is None or columns > rows:
        outside = grad_v - matmul(v, turned_v)
        found += matmul(matmul(u, inverse), outside, adjoint_b=True)
    return found


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """``(s, u, v)`` with ``tensor = u @ diag(s) @ adjoint(v)``; without ``compute_uv`` only ``s``.

    The singular values ``s`` descend. Leading dimensions are a batch. ``full_matrices`` makes ``u``
    and ``v`` square.

    Example:
        >>> s, u, v = tf.svd(tf.random_normal([5, 3]))
    """
    s, u, v = svd_op(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    return (real(s), u, v) if compute_uv else real(s)
