"""Losses of binary and count data: values, stability, derivatives (also at 0), errors."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

X = np.array([-3.0, -0.5, 0.25, 2.0])
Z = np.array([0.0, 1.0, 0.5, 0.2])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_sigmoid_cross_entropy(dtype):
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=Z.astype(dtype), logits=X.astype(dtype))
    value = run_both(loss, rtol=2e-2, atol=1e-2 if np.dtype(dtype).itemsize == 2 else 1e-6)
    assert value.dtype == dtype
    expected = -Z * np.log(sigmoid(X)) - (1 - Z) * np.log(1 - sigmoid(X))
    digits = {np.float16: 3e-3, ml_dtypes.bfloat16: 3e-2, np.float32: 1e-6}.get(dtype, 1e-12)
    np.testing.assert_allclose(value.astype(np.float64), expected, rtol=digits)


def test_weighted_cross_entropy():
    loss = tf.nn.weighted_cross_entropy_with_logits(labels=Z, logits=X, pos_weight=3.0)
    expected = -3 * Z * np.log(sigmoid(X)) - (1 - Z) * np.log(1 - sigmoid(X))
    np.testing.assert_allclose(run_both(loss), expected, rtol=1e-12)
    old = tf.nn.weighted_cross_entropy_with_logits(targets=Z, logits=X, pos_weight=3.0)
    np.testing.assert_allclose(run_both(old), expected, rtol=1e-12)


def test_confident_logits():
    logits = np.array([1000.0, -1000.0, 1000.0, 50.0], np.float32)
    labels = np.array([1.0, 0.0, 0.0, 1.0], np.float32)
    expected = [0, 0, 1000, np.exp(-50.0)]
    plain = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    weighted = tf.nn.weighted_cross_entropy_with_logits(labels, logits, 1.0)
    for value in run_both([plain, weighted]):
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_derivatives():
    def sigmoid_loss(x, z):
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)

    def weighted(x, z):
        return tf.nn.weighted_cross_entropy_with_logits(z, x, 3.0)

    assert_derivatives(sigmoid_loss, X, Z)
    assert_derivatives(weighted, X, Z)
    assert_derivatives(lambda c, z: tf.nn.log_poisson_loss(z, c), X, Z)
    counts = np.array([2.0, 3.0, 5.0, 7.0])
    assert_derivatives(lambda c, z: tf.nn.log_poisson_loss(z, c, True), X, counts)


def test_gradient_at_zero_logits():
    """Where a model with zero weights starts: both must see sigmoid(0) - z."""
    x = tf.zeros([3], tf.float64)
    z = np.array([0.0, 1.0, 0.5])
    plain = tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)
    weighted = tf.nn.weighted_cross_entropy_with_logits(z, x, 1.0)
    for loss in (plain, weighted):
        np.testing.assert_allclose(run_both(tf.gradients(loss, x)[0]), 0.5 - z)


def test_log_poisson_loss():
    z = np.array([0.0, 1.0, 2.0, 10.0])
    short, full = run_both([tf.nn.log_poisson_loss(z, X), tf.nn.log_poisson_loss(z, X, True)])
    np.testing.assert_allclose(short, np.exp(X) - X * z)
    log_factorial = np.log([1, 1, 2, 3628800])
    np.testing.assert_allclose(full, np.exp(X) - X * z + log_factorial, atol=0.05)


def test_mistakes():
    with pytest.raises(ValueError, match="same shape"):
        tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 2.0, 3.0], logits=[1.0, 2.0])
    with pytest.raises(ValueError, match="named arguments"):
        tf.nn.sigmoid_cross_entropy_with_logits([1.0], [2.0])
    with pytest.raises(ValueError, match="same shape"):
        tf.nn.log_poisson_loss([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="both 'labels' and 'targets'"):
        tf.nn.weighted_cross_entropy_with_logits([1.0], [1.0], 1.0, targets=[1.0])
