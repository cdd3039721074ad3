"""Dropout: what is dropped, what is kept and by how much, noise shapes, gradients, errors."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both

ONES = np.ones((50, 40))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("rate", [0.25, 0.5])
def test_fraction_and_scale(dtype, rate):
    y = run_both(tf.nn.dropout(tf.constant(ONES.astype(dtype)), rate=rate, seed=1))
    assert y.dtype == dtype
    kept = y != 0
    np.testing.assert_allclose(y[kept].astype(np.float64), 1 / (1 - rate), rtol=1e-2)
    # 2,000 draws: five standard deviations are below 0.06.
    assert abs(kept.mean() - (1 - rate)) < 0.06


def test_keep_prob_is_one_minus_rate():
    tf.set_random_seed(3)
    by_rate = tf.nn.dropout(ONES, rate=0.25, seed=7)
    by_keep = tf.nn.dropout(ONES, 0.75, seed=7)
    a, b = run_both([by_rate, by_keep])
    np.testing.assert_array_equal(a, b)


def test_fed_probabilities():
    keep = tf.placeholder(tf.float64, [])
    y = tf.nn.dropout(ONES, keep, seed=7)
    np.testing.assert_array_equal(run_both(y, {keep: 1.0}), ONES)
    half = run_both(y, {keep: 0.5})
    assert set(np.unique(half)) == {0.0, 2.0}
    rate = tf.placeholder(tf.float32, [])
    same = tf.nn.dropout(ONES, rate=rate, seed=7)
    np.testing.assert_array_equal(run_both(same, {rate: 0.5}), half)


def test_no_dropout_is_the_input_itself():
    x = tf.constant(ONES)
    assert tf.nn.dropout(x, rate=0.0) is x
    assert tf.nn.dropout(x, keep_prob=1.0) is x


@pytest.mark.parametrize("noise_shape", [[50, 1], [None, 1], [1, 40], (50, 1)])
def test_noise_shape(noise_shape):
    y = run_both(tf.nn.dropout(ONES, rate=0.5, noise_shape=noise_shape, seed=1))
    axis = 1 if noise_shape[1] == 1 else 0
    assert (np.ptp(y, axis=axis) == 0).all()
    assert 0 < (y != 0).mean() < 1


def test_noise_shape_of_tensors():
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.nn.dropout(x, rate=0.5, noise_shape=[tf.shape(x)[0], 1], seed=1)
    assert y.shape.as_list() == [None, 4]
    value = run_both(y, {x: np.ones((30, 4))})
    assert (np.ptp(value, axis=1) == 0).all()
    by_tensor = tf.nn.dropout(x, rate=0.5, noise_shape=tf.constant([30, 1]), seed=1)
    assert run_both(by_tensor, {x: np.ones((30, 4))}).shape == (30, 4)


def test_gradient_follows_the_mask():
    x = tf.constant(ONES)
    y = tf.nn.dropout(x, rate=0.25, seed=1)
    value, grad = run_both([y, tf.gradients(y, x)[0]])
    np.testing.assert_allclose(grad, value)


def test_what_is_dropped_may_be_infinite():
    x = tf.constant(np.full((200,), np.inf, np.float32))
    y = run_both(tf.nn.dropout(x, rate=0.5, seed=1))
    assert not np.isnan(y).any()
    assert (y == 0).any()


def test_steps_differ_and_seeds_repeat():
    y = tf.nn.dropout(ONES, rate=0.5, seed=1)
    with tf.Session() as first, tf.Session() as second:
        a, b = first.run(y), first.run(y)
        assert (a != b).any()
        np.testing.assert_array_equal(a, second.run(y))


def test_mistakes():
    with pytest.raises(ValueError, match="floating-point"):
        tf.nn.dropout([1, 2], 0.5)
    with pytest.raises(ValueError, match=r"range \[0, 1\), not 1.0"):
        tf.nn.dropout([1.0], rate=1.0)
    with pytest.raises(ValueError, match=r"range \[0, 1\)"):
        tf.nn.dropout([1.0], 1.5)
    with pytest.raises(ValueError, match="needs a rate"):
        tf.nn.dropout([1.0])
    with pytest.raises(ValueError, match="both 'keep_prob' and 'rate'"):
        tf.nn.dropout([1.0], 0.5, rate=0.5)
    with pytest.raises(ValueError, match="scalar"):
        tf.nn.dropout([1.0, 2.0], rate=[0.5, 0.5])
    with pytest.raises(ValueError, match="noise_shape"):
        tf.nn.dropout(tf.placeholder(tf.float32, [None]), rate=0.5, noise_shape=[None])
