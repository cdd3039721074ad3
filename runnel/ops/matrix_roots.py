"""Square roots and logarithms of matrices."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.array_shape import reshape, shape
from runnel.ops.complex_numbers import conj
from runnel.ops.diagonal import eye
from runnel.ops.half_precision import narrow, widen
from runnel.ops.joining import concat
from runnel.ops.linear_algebra import matrix_solve, square_dims
from runnel.ops.transposition import matrix_transpose

# Square roots -----------------------------------------------------------------------------------

square_root_op = register_op(
    "MatrixSquareRoot",
    inputs="input: T",
    outputs="output: T",
    attrs="T: {double, float, half, complex64, complex128}",
    host=True,  # a Schur decomposition, which XLA has for CPUs only
)
square_root_op.shape(square_dims)


@square_root_op.kernel
def _(xp, x):
    _require_square(x)
    wide = widen(x)
    if not wide.size:
        return x
    import scipy.linalg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        root = scipy.linalg.sqrtm(wide)
    if wide.dtype.kind != "c" and root.dtype.kind == "c":
        whole = np.any(root.imag != 0, axis=(-2, -1), keepdims=True)
        root = np.where(whole, np.nan, root.real)  # no root among matrices of real numbers
    return narrow(root, x.dtype)


@square_root_op.gradient
def _(op, grad):
    # From R R = A follows dA = R dR + dR R. Its adjoint is the Sylvester equation
    # R* X + X R* = grad, which the rows of X, one behind the other, make a linear system.
    root = op.outputs[0]
    sizes = shape(root)
    batch, size = sizes[:-2], sizes[-1]
    unit = eye(size, batch_shape=batch, dtype=root.dtype)
    left = _kronecker(matrix_transpose(root, conjugate=True), unit, batch, size)
    right = _kronecker(unit, conj(root), batch, size)
    column = reshape(grad, concat([batch, [size * size, 1]], 0))
    return reshape(matrix_solve(left + right, column), sizes)


def _kronecker(a: Tensor, b: Tensor, batch: Tensor, size: Tensor) -> Tensor:
    """The Kronecker product of the matrices ``a`` and ``b`` of one size."""
    spread = reshape(a, concat([batch, [size, 1, size, 1]], 0))
    repeated = reshape(b, concat([batch, [1, size, 1, size]], 0))
    return reshape(spread * repeated, concat([batch, [size * size, size * size]], 0))


def _require_square(x: Any) -> None:
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Input matrices must be square, not {list(x.shape)}")


def matrix_square_root(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The principal square root of each matrix: the one that times itself is the matrix.

    A real matrix without a real root gives NaN; make it complex.

    Example:
        >>> tf.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]])  # [[2, 0], [0, 3]]
    """
    return square_root_op(input, name=name)


# Logarithms -------------------------------------------------------------------------------------

logarithm_op = register_op(
    "MatrixLogarithm",
    inputs="input: T",
    outputs="output: T",
    attrs="T: {complex64, complex128}",
    host=True,  # as for square roots
)
logarithm_op.shape(square_dims)


@logarithm_op.kernel
def _(xp, x):
    _require_square(x)
    if not x.size:
        return x
    import scipy.linalg

    stack = x.reshape((-1, *x.shape[-2:])).astype(np.complex128)  # single precision falls short
    return np.stack([scipy.linalg.logm(a) for a in stack]).reshape(x.shape).astype(x.dtype)


def matrix_logarithm(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The principal logarithm of each complex matrix, whose exponential the matrix is.

    As in TensorFlow, real matrices have to be cast to complex ones, and there is no gradient.

    Example:
        >>> tf.linalg.logm(tf.complex([[1.0, 0.0], [0.0, 2.718282]], 0.0))  # [[0, 0], [0, 1]]
    """
    return logarithm_op(input, name=name)
