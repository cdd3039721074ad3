"""Means and variances, weighted and in two steps; the fraction of zeros."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

X = np.random.default_rng(0).normal(size=(2, 3, 4)) + 5


@pytest.mark.parametrize("axes", [[0], [0, 1], [0, 1, 2], [-1], 1])
@pytest.mark.parametrize("keep", [False, True])
def test_moments(axes, keep):
    over = tuple(axes) if isinstance(axes, list) else axes
    mean, variance = run_both(tf.nn.moments(tf.constant(X), axes, keepdims=keep))
    np.testing.assert_allclose(mean, X.mean(axis=over, keepdims=keep))
    np.testing.assert_allclose(variance, X.var(axis=over, keepdims=keep))
    old = run_both(tf.nn.moments(tf.constant(X), axes, keep_dims=keep))
    np.testing.assert_array_equal(old[0], mean)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_moments_of_halves(dtype):
    x = np.full((4096, 1), 3.0, dtype)
    x[::2] = 5
    mean, variance = run_both(tf.nn.moments(tf.constant(x), [0]))
    assert mean.dtype == variance.dtype == dtype
    assert (float(mean[0]), float(variance[0])) == (4, 1)


def test_moments_with_a_large_mean():
    x = (np.arange(1000) % 2 + 10000).astype(np.float32)
    mean, variance = run_both(tf.nn.moments(tf.constant(x), [0]))
    np.testing.assert_allclose(mean, 10000.5, rtol=1e-6)
    np.testing.assert_allclose(variance, 0.25, rtol=1e-3)


def test_sufficient_statistics():
    x = tf.placeholder(tf.float64)
    for shift in (None, 4.0):
        for tensor in (tf.constant(X), x):
            count, mean_ss, var_ss, s = tf.nn.sufficient_statistics(tensor, [0, 2], shift=shift)
            mean, variance = tf.nn.normalize_moments(count, mean_ss, var_ss, s)
            values = run_both([count, mean_ss, var_ss, mean, variance], {x: X})
            shifted = X - (shift or 0)
            expected = [
                *(8, shifted.sum((0, 2)), (shifted**2).sum((0, 2))),
                *(X.mean((0, 2)), X.var((0, 2))),
            ]
            for value, wanted in zip(values, expected, strict=True):
                np.testing.assert_allclose(value, wanted, rtol=1e-9)
    kept = tf.nn.sufficient_statistics(tf.constant(X), [0, 2], keep_dims=True)
    assert kept[1].shape.as_list() == [1, 3, 1]
    assert kept[3] is None


@pytest.mark.parametrize("keep", [False, True])
def test_weighted_moments(keep):
    weights = np.array([1.0, 0.0, 3.0]).reshape(3, 1)
    mean, variance = run_both(
        tf.nn.weighted_moments(tf.constant(X), [0, 1], weights, keepdims=keep)
    )
    repeated = np.concatenate([X[:, :1], X[:, 2:], X[:, 2:], X[:, 2:]], axis=1)
    np.testing.assert_allclose(mean, repeated.mean((0, 1), keepdims=keep))
    np.testing.assert_allclose(variance, repeated.var((0, 1), keepdims=keep))


def test_weighted_moments_without_weight_are_zero():
    mean, variance = run_both(
        tf.nn.weighted_moments(tf.constant(X), [0], tf.zeros([1], tf.float64))
    )
    assert not mean.any() and not variance.any()


def test_derivatives():
    assert_derivatives(lambda x: tf.nn.moments(x, [0, 1])[0], X, order=1)
    assert_derivatives(lambda x: tf.nn.moments(x, [0, 1])[1], X, order=1)
    weights = np.random.default_rng(1).uniform(0.5, 1, (2, 3, 1))
    assert_derivatives(
        lambda x, w: tf.nn.weighted_moments(x, [0, 1], w)[1], X, weights, tolerance=1e-5
    )


def test_zero_fraction():
    x = tf.placeholder(tf.float32)
    fraction = tf.nn.zero_fraction(x)
    assert fraction.dtype == tf.float32
    assert fraction.op.name == "zero_fraction/fraction"
    assert run_both(fraction, {x: [0.0, 1.0, -0.0, 3.0]}) == 0.5
    assert run_both(tf.nn.zero_fraction([[0, 1, 2, 3]])) == 0.25
    assert np.isnan(run_both(fraction, {x: np.zeros(0)}))


def test_names():
    mean, variance = tf.nn.moments(tf.constant(X), [0], keepdims=True)
    assert (mean.op.name, variance.op.name) == ("moments/mean", "moments/variance")
    with pytest.raises(ValueError, match="both 'keepdims' and 'keep_dims'"):
        tf.nn.moments(tf.constant(X), [0], keep_dims=True, keepdims=True)
