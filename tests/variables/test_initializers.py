"""Initializers: their distributions, scales and descriptions."""

import numpy as np
import pytest

import runnel as tf
from runnel.variables.initializers import compute_fans
from tests.both_tiers import run_both

SHAPE = [300, 200]


def draw(initializer, shape=SHAPE, **options):
    return run_both(initializer(shape, **options))


def test_plain_values():
    np.testing.assert_array_equal(draw(tf.zeros_initializer(), [2]), [0, 0])
    np.testing.assert_array_equal(draw(tf.ones_initializer(tf.int32), [2]), [1, 1])
    np.testing.assert_array_equal(draw(tf.constant_initializer(7), [2, 1]), [[7], [7]])
    np.testing.assert_array_equal(
        draw(tf.constant_initializer([1, 2, 3, 4]), [2, 2]), [[1, 2], [3, 4]]
    )
    np.testing.assert_array_equal(draw(tf.initializers.identity(2.0), [2, 3]), 2 * np.eye(2, 3))


def test_the_type_of_the_call_wins():
    assert draw(tf.zeros_initializer(tf.int32), [2], dtype=tf.float64).dtype == np.float64
    assert draw(tf.random_normal_initializer(seed=1, dtype=tf.float64), [2]).dtype == np.float64


def test_distributions():
    uniform = draw(tf.random_uniform_initializer(-1.0, 3.0, seed=1))
    assert uniform.min() >= -1 and uniform.max() < 3 and abs(uniform.mean() - 1) < 0.02
    normal = draw(tf.random_normal_initializer(2.0, 0.5, seed=1))
    assert abs(normal.mean() - 2) < 0.01 and abs(normal.std() - 0.5) < 0.01
    truncated = draw(tf.truncated_normal_initializer(2.0, 0.5, seed=1))
    assert np.abs(truncated - 2).max() <= 1.0 and abs(truncated.mean() - 2) < 0.01


@pytest.mark.parametrize(
    ("initializer", "variance"),
    [
        (tf.variance_scaling_initializer(seed=1), 1 / 300),
        (tf.variance_scaling_initializer(2.0, "fan_out", seed=1), 2 / 200),
        (tf.variance_scaling_initializer(2.0, "fan_avg", "uniform", seed=1), 2 / 250),
        (tf.variance_scaling_initializer(3.0, "fan_in", "untruncated_normal", seed=1), 3 / 300),
        (tf.variance_scaling_initializer(3.0, "fan_in", "NORMAL", seed=1), 3 / 300),
        (tf.glorot_uniform_initializer(seed=1), 1 / 250),
        (tf.glorot_normal_initializer(seed=1), 1 / 250),
        (tf.initializers.lecun_normal(seed=1), 1 / 300),
        (tf.initializers.lecun_uniform(seed=1), 1 / 300),
        (tf.initializers.he_normal(seed=1), 2 / 300),
        (tf.initializers.he_uniform(seed=1), 2 / 300),
        (tf.uniform_unit_scaling_initializer(seed=1), 1 / 300),
    ],
)
def test_variance(initializer, variance):
    value = draw(initializer)
    assert value.var() == pytest.approx(variance, rel=0.03)
    assert abs(value.mean()) < 0.03 * np.sqrt(variance)


@pytest.mark.parametrize("shape", [[6, 6], [9, 4], [4, 9], [3, 3, 5]])
def test_orthogonal_rows_or_columns(shape):
    q = draw(tf.orthogonal_initializer(gain=2.0, seed=1), shape).reshape(-1, shape[-1])
    gram = q.T @ q if q.shape[0] >= q.shape[1] else q @ q.T
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-5)


def test_fans():
    assert compute_fans([]) == (1, 1)
    assert compute_fans([5]) == (5, 5)
    assert compute_fans([5, 7]) == (5, 7)
    assert compute_fans([3, 3, 16, 32]) == (144, 288)


def test_configurations_make_the_same_again():
    for initializer in (
        tf.zeros_initializer(tf.int32),
        tf.constant_initializer(3.0),
        tf.random_uniform_initializer(1, 2, seed=3),
        tf.random_normal_initializer(1.0, 2.0, 3),
        tf.truncated_normal_initializer(1.0, 2.0, 3),
        tf.uniform_unit_scaling_initializer(2.0, 3),
        tf.variance_scaling_initializer(2.0, "fan_out", "uniform", 3),
        tf.glorot_uniform_initializer(3),
        tf.glorot_normal_initializer(3),
        tf.orthogonal_initializer(2.0, 3),
        tf.initializers.identity(2.0),
    ):
        again = type(initializer).from_config(initializer.get_config())
        assert vars(again) == vars(initializer)


def test_mistakes():
    with pytest.raises(TypeError, match="number, list"):
        tf.constant_initializer(object())
    with pytest.raises(ValueError, match="positive"):
        tf.variance_scaling_initializer(scale=0.0)
    with pytest.raises(ValueError, match="fan_in"):
        tf.variance_scaling_initializer(mode="fan")
    with pytest.raises(ValueError, match="uniform"):
        tf.variance_scaling_initializer(distribution="cauchy")
    with pytest.raises(ValueError, match="int32"):
        tf.random_normal_initializer(dtype=tf.int32)
    with pytest.raises(ValueError, match="two dimensions"):
        tf.orthogonal_initializer()([3])
    with pytest.raises(ValueError, match="matrices"):
        tf.initializers.identity()([3])


def test_the_same_seed_gives_the_same_values():
    values = []
    for _ in range(2):
        with tf.Graph().as_default():
            tf.set_random_seed(5)
            v = tf.get_variable("v", [4])
            w = tf.get_variable("w", [4])
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                values.append(sess.run([v, w]))
    np.testing.assert_array_equal(values[0], values[1])
    assert not np.array_equal(values[0][0], values[0][1])
