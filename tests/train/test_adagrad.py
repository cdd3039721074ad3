"""AdaGrad and its relatives, against the formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.train.stepping import GRADIENTS, INITIAL, PLACES, ROWS, TABLE, steps_of, totals


def test_divides_by_the_root_of_the_squares_so_far():
    found = steps_of(lambda: tf.train.AdagradOptimizer(0.5), INITIAL, GRADIENTS)
    expected, squares = INITIAL.astype(np.float64), np.full(3, 0.1)
    for step, gradient in zip(found, GRADIENTS):
        squares = squares + gradient**2
        expected = expected - 0.5 * gradient / np.sqrt(squares)
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)


def test_equal_indices_are_summed_before_they_are_squared():
    found = steps_of(lambda: tf.train.AdagradOptimizer(0.5), TABLE, ROWS, PLACES)
    expected, squares = TABLE.astype(np.float64), np.full((6, 2), 0.1)
    for step, rows, places in zip(found, ROWS, PLACES):
        for place, total in totals(rows, places).items():
            squares[place] += total**2
            expected[place] -= 0.5 * total / np.sqrt(squares[place])
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)


def test_proximal_shrinks_by_each_elements_own_rate():
    def make():
        return tf.train.ProximalAdagradOptimizer(
            0.5, l1_regularization_strength=0.4, l2_regularization_strength=0.3
        )

    expected, squares = INITIAL.astype(np.float64), np.full(3, 0.1)
    for step, gradient in zip(steps_of(make, INITIAL, GRADIENTS), GRADIENTS):
        squares = squares + gradient**2
        rate = 0.5 / np.sqrt(squares)
        moved = expected - rate * gradient
        expected = np.sign(moved) * np.maximum(np.abs(moved) - 0.4 * rate, 0) / (1 + 0.3 * rate)
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)


def test_dual_averaging_counts_steps_from_one():
    step = tf.train.get_or_create_global_step()
    v = tf.Variable([5.0, 5.0])
    optimizer = tf.train.AdagradDAOptimizer(
        0.5, step, l1_regularization_strength=0.1, l2_regularization_strength=0.2
    )
    gradient = np.array([1.0, -0.05], np.float32)
    train = optimizer.apply_gradients([(tf.constant(gradient), v)], global_step=step)
    with tf.control_dependencies([train]):
        new = v.read_value()
    found = run_both(new, init=tf.global_variables_initializer())
    beyond = np.sign(gradient) * np.maximum(np.abs(gradient) - 0.1, 0)
    expected = -0.5 * beyond / (0.2 * 0.5 + np.sqrt(0.1 + gradient**2))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found[1] == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.0),
        lambda: tf.train.ProximalAdagradOptimizer(0.1, initial_accumulator_value=-1.0),
        lambda: tf.train.AdagradDAOptimizer(
            0.1, None, initial_gradient_squared_accumulator_value=0.0
        ),
    ],
)
def test_an_accumulator_must_begin_positive(make):
    with pytest.raises(ValueError, match="must be positive"):
        make()
