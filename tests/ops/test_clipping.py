"""Clipping, in both tiers, against NumPy and finite differences."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

X = np.random.default_rng(5).normal(size=(3, 4)) * 3


def test_by_value():
    values = run_both(
        [
            tf.clip_by_value(tf.constant(X), -1.0, 1.0),
            tf.clip_by_value(tf.constant(X), np.arange(-4.0, 0.0), 2.0),
            tf.get_op_def("ClipByValue")(tf.constant(X), -1.0, 1.0),
            tf.clip_by_value(tf.constant([-5, 0, 5]), -2, 2),
        ]
    )
    np.testing.assert_array_equal(values[0], X.clip(-1, 1))
    np.testing.assert_array_equal(values[1], np.clip(X, np.arange(-4.0, 0.0), 2.0))
    np.testing.assert_array_equal(values[2], X.clip(-1, 1))
    np.testing.assert_array_equal(values[3], [-2, 0, 2])
    assert_derivatives(lambda x: tf.square(tf.clip_by_value(x, -1.0, 1.0)), X)
    assert_derivatives(tf.get_op_def("ClipByValue"), X, np.array(-1.0), np.array(1.0), order=1)


def test_limits_must_not_stretch():
    with pytest.raises(ValueError, match="rank|compatible"):
        tf.clip_by_value(tf.zeros([2]), tf.zeros([3, 2]), 1.0)


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_by_norm(limit):
    def oracle(x, axis=None):
        norm = np.sqrt((x * x).sum(axis, keepdims=True))
        return x * limit / np.maximum(norm, limit)

    values = run_both([tf.clip_by_norm(X, limit), tf.clip_by_norm(X, limit, axes=[1])])
    np.testing.assert_allclose(values[0], oracle(X), rtol=1e-6)
    np.testing.assert_allclose(values[1], oracle(X, 1), rtol=1e-6)
    assert_derivatives(lambda x: tf.square(tf.clip_by_norm(x, limit)), X, tolerance=1e-4)


def test_the_gradient_at_zero_is_finite():
    x = tf.constant([0.0, 0.0])
    np.testing.assert_array_equal(run_both(tf.gradients(tf.clip_by_norm(x, 1.0), x)[0]), [1, 1])


def test_by_average_norm():
    value = run_both(tf.clip_by_average_norm(tf.constant([3.0, 4.0]), 1.0))
    np.testing.assert_allclose(value, [1.2, 1.6], rtol=1e-6)  # 5 / 2 elements, scaled to 1


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_by_global_norm(limit):
    y = np.array([1.0, 2.0])
    tensors = [tf.constant(X), None, tf.constant(y)]
    clipped, norm = tf.clip_by_global_norm(tensors, limit)
    assert clipped[1] is None
    total = np.sqrt((X * X).sum() + (y * y).sum())
    a, b, found = run_both([clipped[0], clipped[2], norm])
    scale = min(1, limit / total)
    np.testing.assert_allclose(found, total, rtol=1e-6)
    np.testing.assert_allclose(a, X * scale, rtol=1e-6)
    np.testing.assert_allclose(b, y * scale, rtol=1e-6)
    given, _ = tf.clip_by_global_norm([tf.constant([3.0])], 1.0, use_norm=tf.constant(2.0))
    np.testing.assert_allclose(run_both(given[0]), [1.5])


def test_a_broken_norm_shows():
    for bad in (np.inf, np.nan):
        clipped, _ = tf.clip_by_global_norm([tf.constant([1.0, bad])], 1.0)
        assert np.isnan(run_both(clipped[0])).all()


def test_slices_stay_sparse():
    slices = tf.IndexedSlices(tf.constant([[3.0, 4.0]]), tf.constant([1]), tf.constant([3, 2]))
    results = [
        tf.clip_by_value(slices, -1.0, 3.5),
        tf.clip_by_norm(slices, 1.0),
        tf.clip_by_global_norm([slices], 1.0)[0][0],
    ]
    assert all(isinstance(r, tf.IndexedSlices) for r in results)
    values = run_both([r.values for r in results])
    for value, want in zip(values, [[[3, 3.5]], [[0.6, 0.8]], [[0.6, 0.8]]], strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6)


def test_mistakes():
    with pytest.raises(TypeError, match="sequence"):
        tf.clip_by_global_norm(tf.constant(1.0), 1.0)
    with pytest.raises(ValueError, match="at least one"):
        tf.global_norm([None])
