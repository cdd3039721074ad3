"""LU factors, functions of matrices and matrices of three diagonals, compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import runnel  # noqa: E402
from tests.both_tiers import run_both  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

RNG = np.random.default_rng(3)
STACK = RNG.normal(size=(2, 3, 4, 4))
ROOTED = np.eye(4) * 4 + RNG.normal(size=(2, 4, 4)) * 0.5
DIAGONALS = RNG.normal(size=(2, 3, 5)) + np.array([0, 3, 0])[:, None]
SIDES = RNG.normal(size=(2, 5, 3))
TYPES = pytest.mark.parametrize(
    "kind, tolerance", [(np.float32, 2e-4), (np.float64, 1e-10), (np.complex128, 1e-10)]
)


def in_type(kind: Any, x: np.ndarray) -> np.ndarray:
    return (x + 1j * x[::-1] * 0.3 if np.dtype(kind).kind == "c" else x).astype(kind)


@pytest.mark.parametrize("kind, tolerance", [(np.float32, 1e-4), (np.float64, 1e-10)])
@pytest.mark.parametrize("shape", [None, [None, None, None, None], [None, None, 4, None]])
def test_lu(kind, tolerance, shape):
    compare(
        lambda tf, x: [*tf.linalg.lu(x), tf.linalg.lu(x, output_idx_type=tf.int64)[1]],
        STACK.astype(kind),
        shapes=None if shape is None else [shape],
        order=0,
        rtol=tolerance,
        atol=tolerance,
    )


def test_complex_lu():
    """LAPACK and Eigen measure complex pivots in two ways, so the factors' product is compared."""

    def build(tf: Any, x: Any) -> Any:
        packed, order = tf.linalg.lu(x)
        lower = tf.linalg.set_diag(tf.linalg.band_part(packed, -1, 0), tf.ones([4], x.dtype))
        product = tf.matmul(lower, tf.linalg.band_part(packed, 0, -1))
        return tf.gather(product, tf.invert_permutation(order))

    compare(build, in_type(np.complex128, STACK[0])[0], order=0, rtol=1e-10)


def test_lu_of_a_singular_matrix_is_refused():
    with pytest.raises(runnel.errors.InvalidArgumentError, match="not invertible"):
        run_both(runnel.linalg.lu(runnel.constant(np.ones((2, 2), np.float32))))


@TYPES
def test_square_roots(kind, tolerance):
    x = in_type(kind, ROOTED)
    compare(lambda tf, x: tf.linalg.sqrtm(x), x, rtol=tolerance, atol=tolerance)
    compare(lambda tf, x: tf.matrix_square_root(x), x[0], rtol=tolerance, atol=tolerance)


def test_a_matrix_without_a_real_root_gives_nan():
    root = runnel.linalg.sqrtm(np.array([[[-4.0, 1.0], [0.0, 9.0]], [[4.0, 0.0], [0.0, 9.0]]]))
    found = run_both(root)
    assert np.isnan(found[0]).any()
    np.testing.assert_allclose(found[1], [[2, 0], [0, 3]])


@pytest.mark.parametrize("kind, tolerance", [(np.complex64, 1e-4), (np.complex128, 1e-10)])
def test_logarithms(kind, tolerance):
    x = in_type(kind, ROOTED)
    compare(lambda tf, x: tf.linalg.logm(x), x, order=0, rtol=tolerance, atol=tolerance)


@TYPES
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.3, 1.0, 6.0])
def test_exponentials(kind, tolerance, scale):
    x = in_type(kind, STACK) * kind(scale)
    largest = float(np.exp(2.0 * scale))
    compare(
        lambda tf, x: tf.linalg.expm(x),
        x,
        order=0 if np.dtype(kind).kind == "c" or not scale else 1,
        rtol=tolerance * (10 if scale > 2 else 1),
        atol=tolerance * largest,
    )


def test_exponentials_of_matrices_of_different_sizes_and_unknown_shape():
    x = STACK * np.array([1e-3, 1, 8]).reshape(3, 1, 1)
    compare(lambda tf, x: tf.linalg.expm(x), x, shapes=[[None, None, 4, 4]], rtol=1e-8, atol=1e-6)
    compare(lambda tf, x: tf.linalg.expm(x), STACK[0, 0], rtol=1e-9, atol=1e-9)


FORMATS = {
    "compact": lambda tf, d: d,
    "sequence": lambda tf, d: [d[:, 0], d[:, 1], d[:, 2]],
    "matrix": lambda tf, d: tf.matrix_diag(d[:, 1]) + tf.matrix_diag(d[:, 0, :-1], k=1),
}


@TYPES
@pytest.mark.parametrize("form", FORMATS)
def test_three_diagonals(kind, tolerance, form):
    def build(tf: Any, d: Any, b: Any) -> list[Any]:
        rows = FORMATS[form](tf, d)
        return [
            tf.linalg.tridiagonal_matmul(rows, b, diagonals_format=form),
            tf.linalg.tridiagonal_solve(rows, b, diagonals_format=form),
            tf.linalg.tridiagonal_solve(rows, b[:, :, 0], diagonals_format=form),
            tf.linalg.tridiagonal_solve(
                rows, tf.matrix_transpose(b), form, transpose_rhs=True, conjugate_rhs=True
            ),
        ]

    d, b = in_type(kind, DIAGONALS), in_type(kind, SIDES)
    compare(build, d, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("size", [1, 2])
def test_small_matrices_of_three_diagonals(size):
    d, b = DIAGONALS[:, :, :size], SIDES[:, :size]
    compare(
        lambda tf, d, b: [tf.linalg.tridiagonal_matmul(d, b), tf.linalg.tridiagonal_solve(d, b)],
        d,
        b,
        rtol=1e-9,
        atol=1e-9,
    )


def test_pivots_are_exchanged_where_the_main_diagonal_is_zero():
    d = np.array([[1.0, 2.0, 3.0, 9.0], [0.0, 1.0, 0.0, 1.0], [9.0, 1.0, 2.0, 3.0]])
    compare(lambda tf, d, b: tf.linalg.tridiagonal_solve(d, b), d, SIDES[0, :4], rtol=1e-9)


def test_a_singular_matrix_of_three_diagonals_gives_nan_in_both_tiers():
    found = runnel.linalg.tridiagonal_solve(np.zeros((3, 4)), np.ones(4))
    assert np.isnan(run_both(found)).all()


@pytest.mark.parametrize("function", ["tridiagonal_matmul", "tridiagonal_solve"])
def test_an_unknown_format_is_refused(function):
    with pytest.raises(ValueError, match="diagonals_format must be one of"):
        getattr(runnel.linalg, function)(DIAGONALS, SIDES, diagonals_format="rows")
