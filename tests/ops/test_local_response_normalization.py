"""Local response normalisation against a loop over windows, and its derivatives."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

X = np.random.default_rng(0).normal(size=(2, 1, 2, 7))


def reference(x, radius, bias, alpha, beta):
    y = np.empty_like(x)
    for c in range(x.shape[-1]):
        window = x[..., max(c - radius, 0) : c + radius + 1]
        y[..., c] = x[..., c] / (bias + alpha * (window**2).sum(-1)) ** beta
    return y


@pytest.mark.parametrize("settings", [(5, 1.0, 1.0, 0.5), (2, 0.5, 0.3, 0.75), (0, 1.0, 2.0, 1.0)])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_values(settings, dtype):
    x = X.astype(dtype)
    y = run_both(tf.nn.lrn(tf.constant(x), *settings), rtol=1e-2)
    assert y.dtype == dtype
    digits = {np.float16: 2e-3, ml_dtypes.bfloat16: 1e-2}.get(dtype, 1e-6)
    expected = reference(x.astype(np.float64), *settings)
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=digits)


def test_window_wider_than_the_channels():
    y = run_both(tf.nn.local_response_normalization(tf.constant(X.astype(np.float32)), 100))
    np.testing.assert_allclose(y, reference(X, 100, 1, 1, 0.5), rtol=1e-5)


@pytest.mark.parametrize("settings", [(5, 1.0, 1.0, 0.5), (2, 0.5, 0.3, 0.75)])
def test_derivatives(settings):
    x = X[:1, :, :, :5]
    assert_derivatives(
        lambda t: tf.nn.lrn(t, *settings), x, dtype=np.float32, delta=1e-2, tolerance=5e-3
    )


def test_shape_and_name():
    y = tf.nn.lrn(tf.placeholder(tf.float32))
    assert y.shape.as_list() == [None] * 4
    assert y.op.name == "LRN"
    with pytest.raises(ValueError, match="rank 4"):
        tf.nn.lrn([[1.0]])


@pytest.mark.parametrize("strange", [np.inf, np.nan, 1e30])
def test_a_channel_without_a_finite_square_leaves_those_far_away_alone(strange):
    x = np.ones((1, 1, 1, 9), np.float32)
    x[..., 0] = strange
    y = run_both(tf.nn.lrn(tf.constant(x), 2, 1.0, 1.0, 0.5))
    expected = reference(np.ones((1, 1, 1, 9)), 2, 1.0, 1.0, 0.5)
    np.testing.assert_allclose(y[..., 5:], expected[..., 5:], rtol=1e-6)
