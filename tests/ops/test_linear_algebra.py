"""Inverses, determinants, factors and systems, in both tiers, against NumPy."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(4)
ROOT = RNG.normal(size=(2, 3, 3))
MATRIX = ROOT @ ROOT.swapaxes(1, 2) + np.eye(3)
GENERAL = ROOT + 2 * np.eye(3)
RHS = RNG.normal(size=(2, 3, 2))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex128])
def test_values(kind):
    a, b = GENERAL.astype(kind), RHS.astype(kind)
    if kind is np.complex128:
        a = a + 0.3j * ROOT
    x, y = tf.constant(a), tf.constant(b)
    adjoint = a.conj().swapaxes(1, 2)
    sign, logarithm = tf.linalg.slogdet(x)
    pairs = [
        (tf.matrix_inverse(x), np.linalg.inv(a)),
        (tf.matrix_inverse(x, adjoint=True), np.linalg.inv(adjoint)),
        (tf.matrix_determinant(x), np.linalg.det(a)),
        (sign * tf.exp(logarithm), np.linalg.det(a)),
        (tf.matrix_solve(x, y), np.linalg.solve(a, b)),
        (tf.matrix_solve(x, y, adjoint=True), np.linalg.solve(adjoint, b)),
        (tf.matrix_triangular_solve(x, y), np.linalg.solve(np.tril(a), b)),
        (tf.matrix_triangular_solve(x, y, lower=False), np.linalg.solve(np.triu(a), b)),
        (
            tf.matrix_triangular_solve(x, y, adjoint=True),
            np.linalg.solve(np.tril(a).conj().swapaxes(1, 2), b),
        ),
    ]
    tolerance = 1e-3 if kind is np.float32 else 1e-10
    values = run_both([p[0] for p in pairs], rtol=tolerance, atol=tolerance)
    for value, (tensor, want) in zip(values, pairs, strict=True):
        assert value.dtype == kind
        assert tuple(tensor.shape.as_list()) == value.shape
        np.testing.assert_allclose(value, want, rtol=tolerance, atol=tolerance)


def test_cholesky_reads_the_lower_triangle():
    x = np.tril(MATRIX) + np.triu(np.full((3, 3), 7.0), 1)
    np.testing.assert_allclose(run_both(tf.cholesky(x)), np.linalg.cholesky(MATRIX), rtol=1e-10)


def symmetric(x):
    return (x + tf.matrix_transpose(x)) / 2


@pytest.mark.parametrize(
    "function",
    [
        tf.matrix_inverse,
        lambda x: tf.matrix_inverse(x, adjoint=True),
        tf.matrix_determinant,
        lambda x: tf.linalg.slogdet(x)[1],
        lambda x: tf.cholesky(symmetric(x)),
    ],
)
def test_derivatives(function):
    assert_derivatives(function, MATRIX, order=2, tolerance=1e-4, delta=1e-5)


@pytest.mark.parametrize("adjoint", [False, True])
def test_derivatives_of_systems(adjoint):
    assert_derivatives(
        lambda a, b: tf.matrix_solve(a, b, adjoint=adjoint), MATRIX, RHS, tolerance=1e-4
    )
    for lower in (False, True):
        assert_derivatives(
            lambda a, b, lower=lower: tf.matrix_triangular_solve(a, b, lower, adjoint),
            MATRIX,
            RHS,
            order=1,
            tolerance=1e-4,
            delta=1e-5,
        )


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_singular_matrices(level):
    x = tf.placeholder(tf.float64, [2, 2])
    singular = np.zeros((2, 2))
    with session(level) as sess:
        for build, message in (
            (tf.matrix_inverse, "not invertible"),
            (lambda m: tf.matrix_solve(m, tf.ones([2, 1], tf.float64)), "not invertible"),
            (
                lambda m: tf.matrix_triangular_solve(m, tf.ones([2, 1], tf.float64)),
                "not invertible",
            ),
            (tf.cholesky, "Cholesky decomposition was not successful"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                sess.run(build(x), {x: singular - 1 if build is tf.cholesky else singular})
        assert sess.run(tf.matrix_determinant(x), {x: singular}) == 0


def test_mistakes():
    with pytest.raises(ValueError, match="square"):
        tf.matrix_inverse(tf.zeros([2, 3]))
    with pytest.raises(ValueError, match="3 rows, but rhs has 2"):
        tf.matrix_solve(tf.zeros([3, 3]), tf.zeros([2, 1]))
