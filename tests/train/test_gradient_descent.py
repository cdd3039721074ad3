"""Gradient descent and its proximal version, against the formulas in NumPy."""

from __future__ import annotations

import numpy as np

import runnel as tf
from tests.train.stepping import GRADIENTS, INITIAL, PLACES, ROWS, TABLE, steps_of


def test_descends_by_the_learning_rate():
    found = steps_of(lambda: tf.train.GradientDescentOptimizer(0.1), INITIAL, GRADIENTS)
    expected = INITIAL - 0.1 * np.cumsum(GRADIENTS, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_sparse_rows_with_the_same_index_add_up():
    found = steps_of(lambda: tf.train.GradientDescentOptimizer(0.1), TABLE, ROWS, PLACES)
    expected = TABLE.astype(np.float64)
    for step, rows, places in zip(found, ROWS, PLACES):
        np.subtract.at(expected, places, 0.1 * rows)
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)


def _soft(value: np.ndarray, rate: float, l1: float, l2: float) -> np.ndarray:
    return np.sign(value) * np.maximum(np.abs(value) - rate * l1, 0) / (1 + rate * l2)


def test_proximal_steps_shrink_towards_zero():
    def make():
        return tf.train.ProximalGradientDescentOptimizer(0.1, 2.0, 0.5)

    found = steps_of(make, INITIAL, GRADIENTS)
    expected = INITIAL.astype(np.float64)
    for step, gradient in zip(found, GRADIENTS):
        expected = _soft(expected - 0.1 * gradient, 0.1, 2.0, 0.5)
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)
    assert (found[-1] == 0).any()  # L1 gives exact zeros


def test_proximal_rows_that_have_no_gradient_stay():
    def make():
        return tf.train.ProximalGradientDescentOptimizer(0.1, 2.0, 0.5)

    found = steps_of(make, TABLE, ROWS[:1], PLACES[:1])[0]
    np.testing.assert_array_equal(found[[1, 4, 5]], TABLE[[1, 4, 5]])
    expected = _soft(TABLE[0] - 0.1 * (ROWS[0, 0] + ROWS[0, 2]), 0.1, 2.0, 0.5)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)
