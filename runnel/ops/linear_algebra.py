"""Inverses, determinants, Cholesky factors and linear systems of (stacks of) square matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runnel.graph.conversion import constant_tensor
from runnel.graph.operation import Tensor
from runnel.graph.registry import get_op_def, register_op
from runnel.graph.shapes import Dims, broadcast_dims, format_dims
from runnel.ops.blas_threads import with_threads_for
from runnel.ops.half_precision import narrow, widen
from runnel.ops.matmul import matmul

_TYPES = "T: {double, float, half, complex64, complex128}"


def square_dims(x: Tensor) -> Dims:
    """The shape of (stacks of) square matrices; others are a ValueError."""
    if x.dims is None:
        return None
    if len(x.dims) < 2:
        raise ValueError(f"Shape must be at least rank 2 but is {format_dims(x.dims)}")
    rows, columns = x.dims[-2:]
    if rows is not None and columns is not None and rows != columns:
        raise ValueError(f"The matrices must be square, not {rows} by {columns}")
    return x.dims


def _adjoint(xp: Any, x: Any) -> Any:
    flipped = xp.swapaxes(x, -1, -2)
    return xp.conjugate(flipped) if x.dtype.kind == "c" else flipped


def _solved(xp: Any, check: Any, message: str, solve: Callable[[], Any], *given: Any) -> Any:
    """The result of ``solve``; where it has none NumPy raises and XLA gives what is not finite."""
    for x in given[:1]:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input matrices must be square, not {list(x.shape)}")
    if xp is np:
        try:
            return _factored(xp, solve, given[0])
        except np.linalg.LinAlgError:
            check(False, lambda: message)
    result = solve()
    usual = xp.isfinite(result).all()
    for x in given:
        usual = usual | ~xp.isfinite(x).all()
    check(usual, lambda: message)
    return result


def _factored(xp: Any, compute: Callable[[], Any], x: Any) -> Any:
    """The result of ``compute``, which takes the matrices ``x`` apart."""
    return with_threads_for(x.size * x.shape[-1], compute) if xp is np else compute()


inverse_op = register_op(
    "MatrixInverse", inputs="input: T", outputs="output: T", attrs=["adjoint: bool = false", _TYPES]
)
inverse_op.shape(square_dims)


@inverse_op.kernel
def _(xp, x, *, adjoint, check):
    wide = widen(x)
    out = _solved(xp, check, "Input is not invertible.", lambda: xp.linalg.inv(wide), wide)
    return narrow(_adjoint(xp, out) if adjoint else out, x.dtype)


@inverse_op.gradient
def _(op, grad):
    inverse = op.outputs[0]
    adjoint = not op.attrs["adjoint"]
    if adjoint:
        inner = matmul(grad, inverse, adjoint_b=True)
        return get_op_def("Neg")(matmul(inverse, inner, adjoint_a=True))
    # The output is the inverse of the adjoint.
    inner = matmul(inverse, grad, adjoint_a=True)
    flipped = matmul(inner, inverse, adjoint_b=True)
    from runnel.ops.transposition import matrix_transpose

    return get_op_def("Neg")(matrix_transpose(flipped, conjugate=True))


determinant_op = register_op(
    "MatrixDeterminant", inputs="input: T", outputs="output: T", attrs=_TYPES
)


@determinant_op.shape
def _(x):
    dims = square_dims(x)
    return None if dims is None else dims[:-2]


@determinant_op.kernel
def _(xp, x):
    wide = widen(x)
    return narrow(_factored(xp, lambda: xp.linalg.det(wide), wide), x.dtype)


@determinant_op.gradient
def _(op, grad):
    scale = (
        grad * get_op_def("Conj")(op.outputs[0])
        if grad.dtype.is_complex
        else (grad * op.outputs[0])
    )
    expand = get_op_def("ExpandDims")
    inverse = inverse_op(op.inputs[0], adjoint=True)
    return expand(expand(scale, -1), -1) * inverse


log_determinant_op = register_op(
    "LogMatrixDeterminant",
    inputs="input: T",
    outputs="sign: T, log_abs_determinant: T",
    attrs=_TYPES,
)


@log_determinant_op.shape
def _(x):
    dims = square_dims(x)
    outer = None if dims is None else dims[:-2]
    return [outer, outer]


@log_determinant_op.kernel
def _(xp, x):
    wide = widen(x)
    sign, logarithm = _factored(xp, lambda: xp.linalg.slogdet(wide), wide)
    return sign.astype(x.dtype), logarithm.astype(x.dtype)


@log_determinant_op.gradient
def _(op, _, grad):
    expand = get_op_def("ExpandDims")
    return expand(expand(grad, -1), -1) * inverse_op(op.inputs[0], adjoint=True)


cholesky_op = register_op("Cholesky", inputs="input: T", outputs="output: T", attrs=_TYPES)
cholesky_op.shape(square_dims)


@cholesky_op.kernel
def _(xp, x, *, check):
    message = "Cholesky decomposition was not successful. The input might not be valid."
    wide = widen(x)
    # Only the lower triangle counts, so what is above must not matter.
    lower = xp.tril(wide)
    strict = xp.tril(wide, -1)
    whole = lower + _adjoint(xp, strict)
    return narrow(_solved(xp, check, message, lambda: xp.linalg.cholesky(whole), whole), x.dtype)


@cholesky_op.gradient
def _(op, grad):
    # Murray, "Differentiation of the Cholesky decomposition" (2016), equation 8.
    factor = op.outputs[0]
    inverse = triangular_solve_op(factor, _identity_like(factor), lower=True)
    middle = matmul(factor, grad, adjoint_a=True)
    middle = _lower_half(middle)
    whole = matmul(matmul(inverse, middle, adjoint_a=True), inverse)
    from runnel.ops.transposition import matrix_transpose

    symmetric = whole + matrix_transpose(whole, conjugate=True)
    return symmetric * constant_tensor(0.5, symmetric.dtype.base_dtype)


def _mask(x: Tensor, compare: str) -> Tensor:
    """1 below the diagonal, and on it too with ``GreaterEqual``, as a matrix of the type of x."""
    size = get_op_def("Shape")(x)[-1]
    positions = get_op_def("Range")(0, size, 1)
    expand = get_op_def("ExpandDims")
    below = get_op_def(compare)(expand(positions, 1), expand(positions, 0))
    return get_op_def("Cast")(below, DstT=x.dtype.base_dtype)


def _lower_half(x: Tensor) -> Tensor:
    """The lower triangle, with half the diagonal."""
    half = constant_tensor(0.5, x.dtype.base_dtype)
    return x * half * (_mask(x, "Greater") + _mask(x, "GreaterEqual"))


def _identity_like(x: Tensor) -> Tensor:
    eye = _mask(x, "Equal")
    return get_op_def("BroadcastTo")(eye, get_op_def("Shape")(x))


# Linear systems -------------------------------------------------------------------------------


def _system(matrix: Tensor, rhs: Tensor) -> Dims:
    dims = square_dims(matrix)
    if dims is None or rhs.dims is None:
        return None
    if len(rhs.dims) < 2:
        raise ValueError(f"rhs must be at least rank 2 but is {format_dims(rhs.dims)}")
    if None not in (dims[-1], rhs.dims[-2]) and dims[-1] != rhs.dims[-2]:
        raise ValueError(f"The matrix has {dims[-1]} rows, but rhs has {rhs.dims[-2]}")
    batch = broadcast_dims(dims[:-2], rhs.dims[:-2])
    return None if batch is None else (*batch, dims[-1], rhs.dims[-1])


solve_op = register_op(
    "MatrixSolve",
    inputs="matrix: T, rhs: T",
    outputs="output: T",
    attrs=["adjoint: bool = false", _TYPES],
)
solve_op.shape(_system)


@solve_op.kernel
def _(xp, matrix, rhs, *, adjoint, check):
    a, b = widen(matrix), widen(rhs)
    a = _adjoint(xp, a) if adjoint else a
    message = "Input matrix is not invertible."
    return narrow(_solved(xp, check, message, lambda: xp.linalg.solve(a, b), a, b), matrix.dtype)


@solve_op.gradient
def _(op, grad):
    matrix = op.inputs[0]
    adjoint = op.attrs["adjoint"]
    solution = op.outputs[0]
    grad_rhs = solve_op(matrix, grad, adjoint=not adjoint)
    left, right = (solution, grad_rhs) if adjoint else (grad_rhs, solution)
    return [get_op_def("Neg")(matmul(left, right, adjoint_b=True)), grad_rhs]


triangular_solve_op = register_op(
    "MatrixTriangularSolve",
    inputs="matrix: T, rhs: T",
    outputs="output: T",
    attrs=[
        "lower: bool = true",
        "adjoint: bool = false",
        "T: {bfloat16, double, float, half, complex64, complex128}",
    ],
)
triangular_solve_op.shape(_system)


@triangular_solve_op.kernel
def _(xp, matrix, rhs, *, lower, adjoint, check):
    a, b = widen(matrix), widen(rhs)
    a = xp.tril(a) if lower else xp.triu(a)  # the other triangle does not count
    diagonal = xp.diagonal(a, axis1=-2, axis2=-1)
    check((diagonal != 0).all(), lambda: "Input matrix is not invertible.")
    if adjoint:
        a, lower = _adjoint(xp, a), not lower
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = xp.broadcast_to(a, batch + a.shape[-2:])
    b = xp.broadcast_to(b, batch + b.shape[-2:])
    if xp is np:
        out: Any = _factored(xp, lambda: np.linalg.solve(a, b), a)
    else:
        from jax.scipy.linalg import solve_triangular

        out = solve_triangular(a, b, lower=lower)
    return narrow(out, matrix.dtype)


@triangular_solve_op.gradient
def _(op, grad):
    from runnel.ops.broadcast_gradient import unbroadcast_batch

    matrix, rhs = op.inputs
    lower, adjoint = op.attrs["lower"], op.attrs["adjoint"]
    solution = op.outputs[0]
    grad_rhs = triangular_solve_op(matrix, grad, lower=lower, adjoint=not adjoint)
    left, right = (solution, grad_rhs) if adjoint else (grad_rhs, solution)
    full = get_op_def("Neg")(matmul(left, right, adjoint_b=True))
    kept = full * _mask(full, "GreaterEqual" if lower else "LessEqual")
    return unbroadcast_batch(matrix, rhs, kept, grad_rhs)


# Functions ------------------------------------------------------------------------------------


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:  # noqa: A002
    """The inverse of each matrix (of its adjoint); a singular one is an error.

    Example:
        >>> tf.linalg.inv([[2.0, 0.0], [0.0, 4.0]])  # [[0.5, 0], [0, 0.25]]
    """
    return inverse_op(input, adjoint=adjoint, name=name)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The determinant of each matrix."""
    return determinant_op(input, name=name)


def slogdet(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:  # noqa: A002
    """The sign of each determinant and the logarithm of its absolute value."""
    sign, logarithm = log_determinant_op(input, name=name)
    return sign, logarithm


def cholesky(input: Any, name: str | None = None) -> Tensor:  # noqa: A002
    """The lower triangular L with L times its adjoint equal to each matrix."""
    return cholesky_op(input, name=name)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """x such that ``matrix @ x = rhs`` (the adjoint of ``matrix``)."""
    return solve_op(matrix, rhs, adjoint=adjoint, name=name)


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """x such that ``matrix @ x = rhs``, reading only one triangle of ``matrix``."""
    return triangular_solve_op(matrix, rhs, lower=lower, adjoint=adjoint, name=name)
