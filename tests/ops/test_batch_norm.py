"""Batch normalisation with given statistics."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 1, 2, 3))
MEAN, OFFSET = RNG.normal(size=(2, 3))
VARIANCE, SCALE = RNG.uniform(0.5, 1.5, (2, 3))


@pytest.mark.parametrize("offset", [OFFSET, None])
@pytest.mark.parametrize("scale", [SCALE, None])
def test_values(offset, scale):
    y = run_both(tf.nn.batch_normalization(tf.constant(X), MEAN, VARIANCE, offset, scale, 1e-3))
    expected = (X - MEAN) / np.sqrt(VARIANCE + 1e-3)
    expected = expected * (1 if scale is None else scale) + (0 if offset is None else offset)
    np.testing.assert_allclose(y, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_with_single_precision_statistics(dtype):
    vectors = [v.astype(np.float32) for v in (MEAN, VARIANCE, OFFSET, SCALE)]
    y = run_both(tf.nn.batch_normalization(tf.constant(X.astype(dtype)), *vectors, 1e-3), rtol=1e-1)
    assert y.dtype == dtype
    expected = (X - MEAN) / np.sqrt(VARIANCE + 1e-3) * SCALE + OFFSET
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=5e-2, atol=5e-2)


def test_derivatives():
    assert_derivatives(
        lambda *args: tf.nn.batch_normalization(*args, 1e-3),
        *(X, MEAN, VARIANCE, OFFSET, SCALE),
        tolerance=1e-5,
    )


@pytest.mark.parametrize("scale_after", [True, False])
def test_global_normalization(scale_after):
    """The function, the op of 2015 and its gradients agree."""
    inputs = [tf.constant(v) for v in (X, MEAN, VARIANCE, OFFSET, SCALE)]
    new = tf.nn.batch_norm_with_global_normalization(*inputs, 1e-3, scale_after)
    old = tf.get_op_def("BatchNormWithGlobalNormalization")(
        *inputs, variance_epsilon=1e-3, scale_after_normalization=scale_after
    )
    gain = SCALE if scale_after else 1
    expected = (X - MEAN) / np.sqrt(VARIANCE + 1e-3) * gain + OFFSET
    used = inputs if scale_after else inputs[:4]
    values = run_both([new, old])
    for value in values:
        np.testing.assert_allclose(value, expected, rtol=1e-7)
    ours, theirs = run_both([tf.gradients(new, used), tf.gradients(old, used)])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7)


def test_newer_argument_names():
    y = tf.nn.batch_norm_with_global_normalization(
        input=X,
        mean=MEAN,
        variance=VARIANCE,
        beta=OFFSET,
        gamma=SCALE,
        variance_epsilon=1e-3,
        scale_after_normalization=True,
    )
    assert y.shape.as_list() == [2, 1, 2, 3]
    with pytest.raises(ValueError, match="both 'input' and 't'"):
        tf.nn.batch_norm_with_global_normalization(
            X, MEAN, VARIANCE, OFFSET, SCALE, 1e-3, True, input=X
        )
