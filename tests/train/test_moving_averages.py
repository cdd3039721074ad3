"""Moving averages, against the recurrence in NumPy; what they are called in a checkpoint."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

LEVELS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
VALUES = [3.0, -1.0, 4.0, 0.5]


def _averages(level, variable, average, maintain):
    """The average after each of VALUES has been loaded."""
    found = []
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(average) == sess.run(variable)
        for value in VALUES:
            variable.load(value, sess)
            sess.run(maintain)
            found.append(sess.run(average))
    return found


@LEVELS
@pytest.mark.parametrize("resource", [False, True])
def test_an_average_begins_with_the_initial_value(level, resource):
    v = tf.Variable(2.0, use_resource=resource)
    ema = tf.train.ExponentialMovingAverage(0.8)
    maintain = ema.apply([v])
    expected, average = [], 2.0
    for value in VALUES:
        average -= 0.2 * (average - value)
        expected.append(average)
    found = _averages(level, v, ema.average(v), maintain)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@LEVELS
def test_early_averages_move_faster_with_a_count_of_updates(level):
    v = tf.Variable(2.0)
    count = tf.Variable(0, trainable=False)
    ema = tf.train.ExponentialMovingAverage(0.8, num_updates=count)
    with tf.control_dependencies([ema.apply([v])]):
        maintain = tf.group(count.assign_add(1))
    expected, average = [], 2.0
    for updates, value in enumerate(VALUES):
        decay = min(0.8, (1 + updates) / (10 + updates))
        average = decay * average + (1 - decay) * value
        expected.append(average)
    found = _averages(level, v, ema.average(v), maintain)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@LEVELS
@pytest.mark.parametrize("debias", [False, True])
def test_the_average_of_a_tensor_begins_with_zero(level, debias):
    x = tf.placeholder(tf.float32, [])
    tensor = x * 1.0
    ema = tf.train.ExponentialMovingAverage(0.8, zero_debias=debias)
    maintain = ema.apply([tensor])
    average, expected, found = 0.0, [], []
    with session(level) as sess:
        sess.run(tf.global_variables_initializer())
        for number, value in enumerate(VALUES, 1):
            average = 0.8 * average + 0.2 * value
            expected.append(average / (1 - 0.8**number) if debias else average)
            sess.run(maintain, {x: value})
            found.append(sess.run(ema.average(tensor)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_names_and_collections():
    with tf.variable_scope("layer"):
        w = tf.get_variable("w", initializer=1.0)
    b = tf.get_variable("b", initializer=1.0)
    frozen = tf.Variable(1.0, trainable=False, name="frozen")
    ema = tf.train.ExponentialMovingAverage(0.9)
    assert ema.name == "ExponentialMovingAverage"
    assert ema.average_name(w) == "layer/w/ExponentialMovingAverage"
    assert ema.average(w) is None
    maintain = ema.apply()
    assert maintain.name == "ExponentialMovingAverage"
    assert ema.average(w).op.name == ema.average_name(w) == "layer/w/ExponentialMovingAverage"
    assert tf.moving_average_variables() == [w, b]
    assert not ema.average(w).trainable
    assert ema.variables_to_restore() == {
        "layer/w/ExponentialMovingAverage": w,
        "b/ExponentialMovingAverage": b,
        "frozen": frozen,
    }
    assert ema.variables_to_restore([b]) == {
        "layer/w": w,
        "b/ExponentialMovingAverage": b,
        "frozen": frozen,
        "layer/w/ExponentialMovingAverage": ema.average(w),
    }


def test_applying_again_keeps_the_averages():
    v = tf.Variable(1.0)
    ema = tf.train.ExponentialMovingAverage(0.9)
    ema.apply([v])
    average = ema.average(v)
    ema.apply([v])
    assert ema.average(v) is average and tf.moving_average_variables() == [v]


def test_a_decay_may_be_a_variable():
    v, decay = tf.Variable(1.0), tf.Variable(0.5, trainable=False)
    ema = tf.train.ExponentialMovingAverage(decay)
    maintain = ema.apply([v])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        v.load(3.0, sess)
        sess.run(maintain)
        assert sess.run(ema.average(v)) == 2.0


def test_averages_follow_the_update_that_they_wait_for():
    v = tf.Variable(1.0)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(3.0 * v)
    ema = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([train]):
        step = ema.apply([v])
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(step)
            assert sess.run([v, ema.average(v)]) == [-0.5, 0.25]


def test_integers_have_no_average():
    with pytest.raises(TypeError, match="must be half, float, or double: v:0 is int32"):
        tf.train.ExponentialMovingAverage(0.9).apply([tf.Variable(1, name="v")])
