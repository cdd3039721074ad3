"""Softmax and log-softmax: values in both tiers, stability, axes, derivatives, errors."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def tolerance(dtype):
    return {np.float16: 2e-3, ml_dtypes.bfloat16: 1e-2, np.float32: 1e-6}.get(dtype, 1e-12)


@pytest.mark.parametrize("dtype", FLOATS)
def test_values(dtype):
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(dtype)
    fetches = [tf.nn.softmax(tf.constant(x)), tf.nn.log_softmax(tf.constant(x))]
    p, log_p = run_both(fetches, rtol=tolerance(dtype))
    expected = softmax(x.astype(np.float64))
    assert p.dtype == log_p.dtype == x.dtype
    np.testing.assert_allclose(p.astype(np.float64), expected, rtol=tolerance(dtype))
    np.testing.assert_allclose(
        log_p.astype(np.float64), np.log(expected), rtol=tolerance(dtype), atol=tolerance(dtype)
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_axis(axis):
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    p, log_p = run_both([tf.nn.softmax(x, axis=axis), tf.nn.log_softmax(x, axis)])
    np.testing.assert_allclose(p, softmax(x, axis), rtol=1e-12)
    np.testing.assert_allclose(log_p, np.log(softmax(x, axis)), rtol=1e-12)


def test_rank_one_and_dim():
    p, q = run_both([tf.nn.softmax([0.0, 0.0]), tf.nn.softmax([[0.0, 0.0]], dim=0)])
    np.testing.assert_array_equal(p, [0.5, 0.5])
    np.testing.assert_array_equal(q, [[1.0, 1.0]])
    with pytest.raises(ValueError, match="both 'axis' and 'dim'"):
        tf.nn.softmax([0.0], axis=0, dim=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_large_logits_do_not_overflow(dtype):
    largest = float(ml_dtypes.finfo(dtype).max)
    x = np.array([[largest, 0.0], [-largest, 0.0], [largest, largest]], dtype)
    p, log_p = run_both([tf.nn.softmax(tf.constant(x)), tf.nn.log_softmax(tf.constant(x))])
    np.testing.assert_array_equal(p.astype(np.float64), [[1, 0], [0, 1], [0.5, 0.5]])
    assert np.isfinite(log_p[0, 0].astype(np.float64))
    assert log_p[0, 1] == -x[0, 0]


def test_excluded_classes():
    p = run_both(tf.nn.softmax([[-np.inf, 0.0, 0.0]]))
    np.testing.assert_array_equal(p, [[0, 0.5, 0.5]])


def test_empty():
    x = tf.placeholder(tf.float32, [None, None])
    for shape in ((0, 3), (3, 0)):
        result = run_both(
            [tf.nn.softmax(x), tf.nn.log_softmax(x)], {x: np.zeros(shape, np.float32)}
        )
        assert [r.shape for r in result] == [shape, shape]


def test_derivatives():
    x = np.random.default_rng(2).normal(size=(2, 3))
    assert_derivatives(tf.nn.softmax, x, order=3)
    assert_derivatives(tf.nn.log_softmax, x, order=3)
    assert_derivatives(lambda t: tf.nn.softmax(t, axis=0), x)


def test_static_shapes_and_names():
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.nn.softmax(x)
    assert y.shape.as_list() == [None, 3]
    assert y.name == "Softmax:0"
    assert tf.nn.log_softmax(x, name="scores").name == "scores:0"
    assert tf.nn.softmax(tf.placeholder(tf.float32)).shape.rank is None


def test_errors():
    with pytest.raises(ValueError, match="at least one dimension"):
        tf.nn.softmax(tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"axis 2 .* \[-2, 2\)"):
        tf.nn.softmax([[1.0]], axis=2)
    with pytest.raises(ValueError, match="rank .* unknown"):
        tf.nn.softmax(tf.placeholder(tf.float32), axis=1)
    with pytest.raises(TypeError, match="int32"):
        tf.nn.softmax([1, 2])
