"""L2 loss and normalisation."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

X = np.random.default_rng(0).normal(size=(3, 4))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_l2_loss(dtype):
    x = X.astype(dtype)
    digits = {np.float16: 1e-3, ml_dtypes.bfloat16: 1e-2, np.float32: 1e-6}.get(dtype, 1e-12)
    loss = run_both(tf.nn.l2_loss(tf.constant(x)))
    assert np.asarray(loss).dtype == dtype
    assert np.shape(loss) == ()
    np.testing.assert_allclose(float(loss), (x.astype(np.float64) ** 2).sum() / 2, rtol=digits)


def test_l2_loss_of_nothing_and_of_a_scalar():
    assert run_both([tf.nn.l2_loss(tf.zeros([0])), tf.nn.l2_loss(4.0)]) == [0, 8]


@pytest.mark.parametrize("axis", [None, 0, 1, [0, 1]])
def test_l2_normalize(axis):
    y = run_both(tf.nn.l2_normalize(X, axis))
    over = tuple(axis) if isinstance(axis, list) else axis
    np.testing.assert_allclose(y, X / np.sqrt((X**2).sum(axis=over, keepdims=True)))


def test_l2_normalize_near_zero():
    y = run_both(tf.nn.l2_normalize([0.0, 1e-8], 0, epsilon=1e-12))
    np.testing.assert_allclose(y, [0, 1e-2], rtol=1e-5)


def test_derivatives():
    assert_derivatives(tf.nn.l2_loss, X)
    assert_derivatives(lambda x: tf.nn.l2_normalize(x, 1), X)


def test_names():
    assert tf.nn.l2_loss(X).op.name == "L2Loss"
    assert tf.nn.l2_normalize(X, dim=1).op.name == "l2_normalize"
    with pytest.raises(ValueError, match="both 'axis' and 'dim'"):
        tf.nn.l2_normalize(X, 1, dim=1)
