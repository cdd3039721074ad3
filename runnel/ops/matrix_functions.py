"""What is made of factors of matrices: least squares, pseudo-inverses, ranks, exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.dtypes import int32
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.ops.array_shape import expand_dims, shape
from runnel.ops.casting import cast
from runnel.ops.complex_numbers import real
from runnel.ops.constants import constant
from runnel.ops.decompositions import svd
from runnel.ops.diagonal import eye, matrix_diag_part
from runnel.ops.elementwise import log, reciprocal
from runnel.ops.fill import zeros_like
from runnel.ops.linear_algebra import cholesky, matrix_triangular_solve
from runnel.ops.matmul import matmul
from runnel.ops.norms import norm
from runnel.ops.reduce_functions import reduce_max, reduce_sum
from runnel.ops.selection import where


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """The solution of ``A @ x = rhs``, given the Cholesky factor of ``A``."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        half = matrix_triangular_solve(chol, rhs, adjoint=False, lower=True)
        return matrix_triangular_solve(chol, half, adjoint=True, lower=True)


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of self-adjoint positive definite matrices."""
    with name_scope(name, "logdet", [matrix]):
        factor = cholesky(matrix)
        return 2.0 * reduce_sum(log(real(matrix_diag_part(factor))), axis=[-1])


def matrix_solve_ls(
    matrix: Any,
    rhs: Any,
    l2_regularizer: float = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """What is nearest to solving ``matrix @ x = rhs``: least squares; the smallest, if many are.

    ``fast`` solves the normal equations by Cholesky factors, with ``l2_regularizer`` times the
    squares of ``x`` added, and needs matrices of full rank; without it singular values are used,
    and the regularizer is not.

    Example:
        >>> line = tf.matrix_solve_ls([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [[1.0], [3.0], [5.0]])
    """
    with name_scope(name, "matrix_solve_ls", [matrix, rhs]):
        matrix = convert_to_tensor(matrix)
        rhs = convert_to_tensor(rhs, matrix.dtype)
        if not fast:
            return matmul(pinv(matrix, rcond=_least(matrix)), rhs)
        rows, columns = (None, None) if matrix.dims is None else matrix.dims[-2:]
        if rows is None or columns is None:
            raise ValueError(
                "matrix_solve_ls has to know the numbers of rows and columns of its matrices, or "
                "whether there are more equations than unknowns; pass fast=False where it cannot"
            )
        if rows >= columns:
            factor = _gramian(matrix, l2_regularizer, first_kind=True)
            return cholesky_solve(factor, matmul(matrix, rhs, adjoint_a=True))
        factor = _gramian(matrix, l2_regularizer, first_kind=False)
        return matmul(matrix, cholesky_solve(factor, rhs), adjoint_a=True)


def _least(matrix: Tensor) -> float:
    """Singular values below this share of the largest count as zero."""
    return float(np.finfo(matrix.dtype.as_numpy_dtype).eps) * 10


def _gramian(matrix: Tensor, regularizer: float, first_kind: bool) -> Tensor:
    """The Cholesky factor of ``A* A`` (or ``A A*``) with the regularizer on its diagonal."""
    products = matmul(matrix, matrix, adjoint_a=first_kind, adjoint_b=not first_kind)
    size = shape(products)[-1]
    unit = eye(size, batch_shape=shape(products)[:-2], dtype=matrix.dtype)
    return cholesky(products + cast(constant(regularizer), matrix.dtype) * unit)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The pseudo-inverses; singular values below ``rcond`` times the largest count as zero."""
    with name_scope(name, "pinv", [a]):
        a = convert_to_tensor(a)
        singular, left, right = svd(a, full_matrices=False, compute_uv=True)
        if rcond is None:
            rows, columns = (None, None) if a.dims is None else a.dims[-2:]
            if rows is None or columns is None:
                raise ValueError("pinv of matrices of unknown size needs an rcond")
            rcond = 10.0 * max(rows, columns) * np.finfo(a.dtype.as_numpy_dtype).eps
        share = convert_to_tensor(rcond, singular.dtype)
        least = expand_dims(share * reduce_max(singular, axis=-1), -1)
        counts = singular > least + zeros_like(singular)
        inverse = where(counts, reciprocal(where(counts, singular, singular + 1.0)), singular * 0.0)
        return matmul(right * cast(expand_dims(inverse, -2), a.dtype), left, adjoint_b=True)


def matrix_rank(
    a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """How many singular values are above ``tol``."""
    with name_scope(name, "matrix_rank", [a]):
        a = convert_to_tensor(a)
        singular = svd(a, compute_uv=False)
        if tol is None:
            size = cast(reduce_max(shape(a)[-2:]), singular.dtype)
            epsilon = float(np.finfo(a.dtype.as_numpy_dtype).eps)
            tol = epsilon * size * reduce_max(singular, axis=-1, keepdims=True)
        return reduce_sum(cast(singular > tol, int32), axis=-1)


def normalize(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    name: str | None = None,  # noqa: A002
) -> tuple[Tensor, Tensor]:
    """``tensor`` divided by its norm along ``axis``, and that norm, with the axis kept."""
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        length = cast(norm(tensor, ord=ord, axis=axis, keepdims=True), tensor.dtype)
        return tensor / length, length
