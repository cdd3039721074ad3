"""Eigenvalues, singular values, QR and what is made of them, in both tiers, against NumPy."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(11)
ROOT = RNG.normal(size=(2, 4, 4))
SYMMETRIC = ROOT + ROOT.swapaxes(1, 2)
TALL, WIDE = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(3, 5))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.complex128])
def test_eigenvalues_ascend_and_vectors_make_the_matrix(kind):
    a = SYMMETRIC.astype(kind)
    if kind is np.complex128:
        a = a + 1j * (ROOT - ROOT.swapaxes(1, 2))
    read = np.tril(a) + np.triu(np.full(a.shape, 9, kind), 1)  # only the lower triangle counts
    e, v = tf.self_adjoint_eig(tf.constant(read))
    tolerance = {np.float16: 5e-2, np.float32: 1e-4}.get(kind, 1e-10)
    made = tf.matmul(v * tf.expand_dims(e, -2), v, adjoint_b=True)
    values, product, alone = run_both(
        [e, made, tf.self_adjoint_eigvals(tf.constant(read))], rtol=tolerance, atol=tolerance
    )
    assert values.dtype == kind and e.shape.as_list() == [2, 4] and v.shape.as_list() == [2, 4, 4]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a.astype(complex)), tolerance, tolerance)
    np.testing.assert_allclose(alone, values, tolerance, tolerance)
    np.testing.assert_allclose(product, a, tolerance, tolerance)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("matrix", [TALL, WIDE, ROOT, TALL + 1j * TALL[::-1]])
def test_singular_values_descend_and_vectors_make_the_matrix(matrix, full):
    s, u, v = tf.svd(tf.constant(matrix), full_matrices=full)
    k = min(matrix.shape[-2:])
    scaled = u[..., :k] * tf.cast(tf.expand_dims(s, -2), matrix.dtype)
    made = tf.matmul(scaled, v[..., :k], adjoint_b=True)
    values, product, alone = run_both(
        [s, made, tf.svd(tf.constant(matrix), compute_uv=False)], rtol=1e-9, atol=1e-9
    )
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, np.linalg.svd(matrix, compute_uv=False), 1e-9, 1e-9)
    np.testing.assert_allclose(alone, values, 1e-9, 1e-9)
    np.testing.assert_allclose(product, matrix, 1e-9, 1e-9)
    shapes = [x.shape for x in np.linalg.svd(matrix, full_matrices=full)]
    assert tuple(u.shape.as_list()) == shapes[0]
    assert tuple(v.shape.as_list()) == (*shapes[2][:-2], *shapes[2][:-3:-1])


def test_derivatives_of_what_does_not_depend_on_signs():
    def of_vectors(x):
        e, v = tf.self_adjoint_eig(x)
        return [e, tf.square(v) * tf.expand_dims(e, -2)]

    symmetric = SYMMETRIC[0] + np.diag([0.0, 2.0, 4.0, 6.0])
    assert_derivatives(lambda x: of_vectors(x)[0], symmetric, order=1, tolerance=1e-5)
    assert_derivatives(lambda x: of_vectors(x)[1], symmetric, order=1, tolerance=1e-5)
    assert_derivatives(tf.self_adjoint_eigvals, symmetric, order=1, tolerance=1e-5)

    def of_singular_vectors(x):
        s, u, v = tf.svd(x)
        return tf.matmul(u * tf.expand_dims(s * s, -2), v, adjoint_b=True)

    for matrix in (TALL[0], WIDE, ROOT[0]):
        assert_derivatives(of_singular_vectors, matrix, order=1, tolerance=1e-4)
        assert_derivatives(lambda x: tf.svd(x, compute_uv=False), matrix, order=1, tolerance=1e-5)
    for matrix in (TALL[0], ROOT[0]):
        for part in (0, 1):
            assert_derivatives(
                lambda x, part=part: tf.square(tf.linalg.qr(x)[part]),
                matrix,
                order=1,
                tolerance=1e-4,
            )


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
@pytest.mark.parametrize("fast", [True, False])
def test_least_squares(shape, fast):
    a, b = RNG.normal(size=(2, *shape)), RNG.normal(size=(2, shape[0], 2))
    found = run_both(tf.matrix_solve_ls(a, b, fast=fast), rtol=1e-7, atol=1e-9)
    want = [np.linalg.lstsq(x, y, rcond=None)[0] for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(found, want, rtol=1e-7, atol=1e-9)
    regular = run_both(tf.linalg.lstsq(a, b, l2_regularizer=0.5), rtol=1e-7, atol=1e-9)
    gram = a.swapaxes(1, 2) @ a + 0.5 * np.eye(shape[1])
    np.testing.assert_allclose(regular, np.linalg.solve(gram, a.swapaxes(1, 2) @ b), rtol=1e-7)


def test_what_is_made_of_factors():
    definite = ROOT @ ROOT.swapaxes(1, 2) + np.eye(4)
    low = TALL @ TALL.swapaxes(1, 2)
    rhs = RNG.normal(size=(2, 4, 1))
    pairs = [
        (tf.linalg.logdet(definite), np.linalg.slogdet(definite)[1]),
        (tf.cholesky_solve(tf.cholesky(definite), rhs), np.linalg.solve(definite, rhs)),
        (tf.linalg.pinv(low), np.linalg.pinv(low)),
        (tf.linalg.matrix_rank(low), np.linalg.matrix_rank(low)),
        (tf.linalg.normalize(TALL, axis=1)[0], TALL / np.linalg.norm(TALL, axis=1, keepdims=True)),
        (tf.linalg.adjoint(TALL + 2j * TALL), (TALL - 2j * TALL).swapaxes(1, 2)),
    ]
    found = run_both([tensor for tensor, _ in pairs], rtol=1e-6, atol=1e-8)
    for value, (_, want) in zip(found, pairs, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6, atol=1e-8)


def test_what_has_no_gradient_says_so():
    x = tf.constant(TALL)
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        tf.gradients(tf.svd(x, full_matrices=True)[1], x)
    z = tf.constant(TALL + 0j)
    with pytest.raises(NotImplementedError, match="complex"):
        tf.gradients(tf.svd(z, compute_uv=False), z)
    with pytest.raises(ValueError, match="square"):
        tf.self_adjoint_eig(x)
