"""Learning rates that change with the step, against the formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, run_both, session

STEPS = np.arange(45)


def _over_steps(make) -> np.ndarray:
    step = tf.placeholder(tf.int64, [])
    rate = make(step)
    run_both(rate, {step: 7})
    with session(COMPILED) as sess:
        return np.array([sess.run(rate, {step: number}) for number in STEPS])


def _check(make, expected):
    np.testing.assert_allclose(_over_steps(make), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("staircase", [False, True])
def test_exponential_kinds(staircase):
    progress = STEPS // 10 if staircase else STEPS / 10
    _check(lambda t: tf.train.exponential_decay(0.5, t, 10, 0.9, staircase), 0.5 * 0.9**progress)
    _check(
        lambda t: tf.train.natural_exp_decay(0.5, t, 10, 0.3, staircase),
        0.5 * np.exp(-0.3 * progress),
    )
    _check(
        lambda t: tf.train.inverse_time_decay(0.5, t, 10, 0.3, staircase),
        0.5 / (1 + 0.3 * progress),
    )


def test_piecewise_constant_takes_a_boundary_to_the_interval_before_it():
    expected = np.select([STEPS <= 10, STEPS <= 30], [1.0, 0.5], 0.1)
    _check(lambda t: tf.train.piecewise_constant(t, [10, 30], [1.0, 0.5, 0.1]), expected)
    assert tf.train.piecewise_constant_decay is tf.train.piecewise_constant


def test_polynomial():
    fraction = np.minimum(STEPS, 30) / 30
    _check(
        lambda t: tf.train.polynomial_decay(0.5, t, 30, 0.1, power=2.0),
        0.4 * (1 - fraction) ** 2 + 0.1,
    )
    length = 10 * np.maximum(np.ceil(STEPS / 10), 1)
    _check(
        lambda t: tf.train.polynomial_decay(0.5, t, 10, 0.1, cycle=True),
        0.4 * (1 - STEPS / length) + 0.1,
    )


def test_cosine_kinds():
    fraction = np.minimum(STEPS, 30) / 30
    wave = 0.5 * (1 + np.cos(np.pi * fraction))
    _check(lambda t: tf.train.cosine_decay(0.5, t, 30, alpha=0.2), 0.5 * (0.8 * wave + 0.2))
    wave = 0.5 * (1 + np.cos(np.pi * 2 * 1.5 * fraction))
    _check(
        lambda t: tf.train.linear_cosine_decay(0.5, t, 30, num_periods=1.5, alpha=0.1, beta=0.01),
        0.5 * ((0.1 + 1 - fraction) * wave + 0.01),
    )


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("growth", [1.0, 2.0])
def test_cosine_restarts(growth, as_tensor):
    expected, start, length, peak = [], 0, 8, 1.0
    for step in STEPS:
        if step >= start + length:
            start, length, peak = start + length, length * growth, peak * 0.9
        wave = 0.5 * peak * (1 + np.cos(np.pi * (step - start) / length))
        expected.append(0.5 * (0.9 * wave + 0.1))

    def make(t):
        factor = tf.constant(growth) if as_tensor else growth
        return tf.train.cosine_decay_restarts(0.5, t, 8, t_mul=factor, m_mul=0.9, alpha=0.1)

    _check(make, expected)


def test_noise_is_on_the_line_and_decays():
    step = tf.placeholder(tf.int64, [])
    rates = [
        tf.train.noisy_linear_cosine_decay(1.0, step, 100, variance, 0.5) for variance in (0.0, 4.0)
    ]
    plain = tf.train.linear_cosine_decay(1.0, step, 100)
    with tf.Session() as sess:
        for number in (0, 15):
            drawn = np.array([sess.run([*rates, plain], {step: number}) for _ in range(400)])
            np.testing.assert_allclose(drawn[:, 0], drawn[:, 2], rtol=1e-6)
            noise = drawn[:, 1] - drawn[:, 2]
            wave = 0.5 * (1 + np.cos(np.pi * number / 100))
            deviation = wave * np.sqrt(4.0 / (1 + number) ** 0.5)
            assert abs(noise.mean()) < 4 * deviation / 20
            assert noise.std() == pytest.approx(deviation, rel=0.15)


def test_the_type_is_that_of_the_learning_rate():
    rate = tf.train.exponential_decay(np.float64(0.1), tf.constant(3, tf.int32), 10, 0.5)
    assert rate.dtype == tf.float64 and rate.op.name == "ExponentialDecay"


def test_numbers_tensors_and_variables_serve_as_the_step():
    variable = tf.Variable(5, trainable=False)
    rates = [
        tf.train.exponential_decay(0.1, step, 10, 0.5) for step in (5, tf.constant(5), variable)
    ]
    found = run_both(rates, init=variable.initializer)
    np.testing.assert_allclose(found, [0.1 * 0.5**0.5] * 3, rtol=1e-6)


def test_mistakes():
    step = tf.constant(3, tf.int64)
    with pytest.raises(ValueError, match="global_step is required"):
        tf.train.exponential_decay(0.1, None, 10, 0.5)
    with pytest.raises(ValueError, match="1 less than the length of values.* 2 and 2"):
        tf.train.piecewise_constant(step, [1, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match=r"Boundaries \(float32\) must have the same dtype as x"):
        tf.train.piecewise_constant(step, [1.5], [0.1, 0.2])
    with pytest.raises(ValueError, match="all with the same dtype"):
        tf.train.piecewise_constant(step, [1], [0.1, 2])
