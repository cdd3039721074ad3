"""AdaDelta, against the formula in NumPy."""

from __future__ import annotations

import numpy as np

import runnel as tf
from tests.train.stepping import GRADIENTS, INITIAL, PLACES, ROWS, TABLE, steps_of, totals


def _step(gradient, squares, updates):
    squares = 0.9 * squares + 0.1 * gradient**2
    update = np.sqrt(updates + 1e-3) / np.sqrt(squares + 1e-3) * gradient
    return update, squares, 0.9 * updates + 0.1 * update**2


def make():
    return tf.train.AdadeltaOptimizer(0.5, rho=0.9, epsilon=1e-3)


def test_steps_follow_the_size_of_earlier_steps():
    expected, squares, updates = INITIAL.astype(np.float64), np.zeros(3), np.zeros(3)
    for step, gradient in zip(steps_of(make, INITIAL, GRADIENTS), GRADIENTS):
        update, squares, updates = _step(gradient, squares, updates)
        expected = expected - 0.5 * update
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)


def test_sparse_gradients_touch_their_rows_only():
    expected = TABLE.astype(np.float64)
    squares, updates = np.zeros((6, 2)), np.zeros((6, 2))
    for step, rows, places in zip(steps_of(make, TABLE, ROWS, PLACES), ROWS, PLACES):
        for p, total in totals(rows, places).items():
            update, squares[p], updates[p] = _step(total, squares[p], updates[p])
            expected[p] -= 0.5 * update
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)
