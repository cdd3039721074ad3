"""Products and linear systems of matrices that have three diagonals.

In the compact format they are the rows of ``[..., 3, size]``: the diagonal above the main one, the
main one and that below, each element in its matrix' row. The last of the first row and the first of
the last one are outside of the matrix and do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.graph.shapes import Dims, format_dims
from runnel.ops.array_shape import expand_dims, squeeze
from runnel.ops.complex_numbers import conj
from runnel.ops.diagonal import matrix_diag_part
from runnel.ops.elementwise import negative
from runnel.ops.fill import zeros_like
from runnel.ops.joining import concat, stack
from runnel.ops.reduce_functions import reduce_sum
from runnel.ops.transposition import matrix_transpose

_TYPES = "T: {double, float, complex64, complex128}"
_FORMATS = ("compact", "sequence", "matrix")


def _up(x: Tensor, axis: int) -> Tensor:
    """Each element in the place before it along the last axis but one (-2) or the last (-1)."""
    first, rest = _ends(axis, slice(None, 1)), _ends(axis, slice(1, None))
    return concat([x[rest], zeros_like(x[first])], axis)


def _down(x: Tensor, axis: int) -> Tensor:
    """Each element in the place behind it."""
    first, rest = _ends(axis, slice(None, 1)), _ends(axis, slice(None, -1))
    return concat([zeros_like(x[first]), x[rest]], axis)


def _ends(axis: int, kept: slice) -> tuple[Any, ...]:
    return (..., kept) if axis == -1 else (..., kept, slice(None))


# Products ---------------------------------------------------------------------------------------

product_op = register_op(
    "TridiagonalMatMul",
    inputs="superdiag: T, maindiag: T, subdiag: T, rhs: T",
    outputs="output: T",
    attrs=_TYPES,
)


@product_op.shape
def _(superdiag, maindiag, subdiag, rhs):
    for diagonal in superdiag, maindiag, subdiag:
        if diagonal.dims is not None and len(diagonal.dims) < 2:
            raise ValueError(
                f"A diagonal must be a matrix of one row, but is {format_dims(diagonal.dims)}"
            )
    return rhs.dims


@product_op.kernel
def _(xp, superdiag, maindiag, subdiag, rhs):
    for diagonal in superdiag, maindiag, subdiag:
        wanted = (*rhs.shape[:-2], 1, rhs.shape[-2])
        if diagonal.shape != wanted:
            raise ValueError(f"A diagonal has shape {list(diagonal.shape)}, not {list(wanted)}")
    none = xp.zeros_like(rhs[..., :1, :])
    above = xp.concatenate([rhs[..., 1:, :], none], axis=-2)
    below = xp.concatenate([none, rhs[..., :-1, :]], axis=-2)
    high, middle, low = (xp.swapaxes(d, -1, -2) for d in (superdiag, maindiag, subdiag))
    return high * above + middle * rhs + low * below


@product_op.gradient
def _(op, grad):
    *diagonals, rhs = op.inputs
    high, middle, low = (matrix_transpose(d, conjugate=True) for d in diagonals)
    right = conj(rhs)
    of_diagonals = [
        expand_dims(reduce_sum(grad * row, -1), -2)
        for row in (_up(right, -2), right, _down(right, -2))
    ]
    return [*of_diagonals, _down(high * grad, -2) + middle * grad + _up(low * grad, -2)]


# Linear systems ---------------------------------------------------------------------------------

solve_op = register_op(
    "TridiagonalSolve",
    inputs="diagonals: T, rhs: T",
    outputs="output: T",
    attrs=["partial_pivoting: bool = true", "perturb_singular: bool = false", _TYPES],
)


@solve_op.shape
def _(diagonals, rhs, **_):
    if diagonals.dims is None or rhs.dims is None:
        return rhs.dims
    return _solution_dims(diagonals.dims, rhs.dims)


def _solution_dims(diagonals: Any, rhs: Any) -> Dims:
    if len(diagonals) < 2 or len(rhs) != len(diagonals):
        raise ValueError(
            f"Diagonals {format_dims(diagonals)} and right-hand sides {format_dims(rhs)} must be "
            "matrices, or batches of them of one rank"
        )
    if diagonals[-2] not in (None, 3):
        raise ValueError(f"Expected 3 diagonals, got {diagonals[-2]}")
    if None not in (diagonals[-1], rhs[-2]) and diagonals[-1] != rhs[-2]:
        raise ValueError(
            f"The matrix has {diagonals[-1]} rows, but the right-hand sides have {rhs[-2]}"
        )
    return rhs


@solve_op.kernel
def _(xp, diagonals, rhs, *, partial_pivoting, perturb_singular):
    if perturb_singular:
        raise NotImplementedError("TridiagonalSolve has no perturb_singular")
    # The largest pivots are taken in any case: without them it would only be less exact.
    _solution_dims(diagonals.shape, rhs.shape)
    if diagonals.shape[:-2] != rhs.shape[:-2]:
        raise ValueError(
            f"Diagonals {list(diagonals.shape)} and right-hand sides {list(rhs.shape)} have "
            "different batches"
        )
    if not rhs.size:
        return rhs
    if xp is not np:
        import jax

        above, main, below = (diagonals[..., i, :] for i in range(3))
        below, above = below.at[..., 0].set(0), above.at[..., -1].set(0)
        return jax.lax.linalg.tridiagonal_solve(below, main, above, rhs)
    found = np.empty_like(rhs)
    for place in np.ndindex(rhs.shape[:-2]):
        found[place] = _solved(diagonals[place], rhs[place])
    return found


def _solved(diagonals: Any, rhs: Any) -> Any:
    """The solution of one system; NaN where there is none."""
    import scipy.linalg

    above, main, below = diagonals
    banded = np.stack([np.roll(above, 1), main, np.roll(below, -1)])
    try:
        return scipy.linalg.solve_banded((1, 1), banded, rhs, check_finite=False)
    except np.linalg.LinAlgError:
        return np.full_like(rhs, np.nan)


@solve_op.gradient
def _(op, grad):
    diagonals, solution = op.inputs[0], conj(op.outputs[0])
    turned = conj(diagonals)
    above, main, below = turned[..., 0, :], turned[..., 1, :], turned[..., 2, :]
    adjoint = stack([_up(below, -1), main, _down(above, -1)], -2)
    grad_rhs = solve_op(adjoint, grad, partial_pivoting=op.attrs["partial_pivoting"])
    neighbours = (_up(solution, -2), solution, _down(solution, -2))
    products = stack([reduce_sum(grad_rhs * row, -1) for row in neighbours], -2)
    return [negative(products), grad_rhs]


# Functions --------------------------------------------------------------------------------------


def _diagonals(given: Any, form: str, dtype: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The three diagonals in any of the formats, each ``[..., size]``."""
    if form == "sequence":
        above, main, below = (convert_to_tensor(d, dtype) for d in given)
        return above, main, below
    if form not in _FORMATS:
        raise ValueError(f"diagonals_format must be one of {', '.join(_FORMATS)}, not {form!r}")
    rows = convert_to_tensor(given, dtype, name="diagonals")
    if form == "matrix":
        if rows.dims is not None and None not in rows.dims[-2:] and rows.dims[-1] != rows.dims[-2]:
            raise ValueError(f"The matrices must be square, not {format_dims(rows.dims)}")
        rows = matrix_diag_part(rows, k=(-1, 1), align="LEFT_RIGHT")
    return rows[..., 0, :], rows[..., 1, :], rows[..., 2, :]


def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """The products of matrices of three diagonals and the matrices ``rhs``.

    ``diagonals`` are rows ``[..., 3, size]`` (``compact``), three tensors ``[..., size]``
    (``sequence``) or whole matrices of which only three diagonals are read (``matrix``).

    Example:
        >>> tf.linalg.tridiagonal_matmul([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]], [[1.0], [2.0]])
    """
    with name_scope(name, "tridiagonal_matmul", [diagonals, rhs]):
        right = convert_to_tensor(rhs, name="rhs")
        rows = _diagonals(diagonals, diagonals_format, right.dtype.base_dtype)
        return product_op(*(expand_dims(row, -2) for row in rows), right)


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """x such that the matrix of three diagonals times x is ``rhs``, in time linear in its size.

    ``diagonals`` are as those of :func:`tridiagonal_matmul`. ``rhs`` are vectors ``[..., size]`` or
    matrices ``[..., size, count]``; matrices may be transposed and all conjugated first. A singular
    matrix gives NaN.

    Example:
        >>> tf.linalg.tridiagonal_solve([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]], [4.0, 5.0])  # [1, 2]
    """
    with name_scope(name, "tridiagonal_solve", [diagonals, rhs]):
        right = convert_to_tensor(rhs, name="rhs")
        if diagonals_format == "compact":
            rows = convert_to_tensor(diagonals, right.dtype.base_dtype, name="diagonals")
        else:
            rows = stack(_diagonals(diagonals, diagonals_format, right.dtype.base_dtype), -2)
        vectors = (
            rows.dims is not None and right.dims is not None and len(right.dims) < len(rows.dims)
        )
        if transpose_rhs and not vectors:
            right = matrix_transpose(right, conjugate=conjugate_rhs)
        elif conjugate_rhs:
            right = conj(right)
        right = expand_dims(right, -1) if vectors else right
        found = solve_op(rows, right, partial_pivoting=partial_pivoting)
        return squeeze(found, -1) if vectors else found
