"""RMSProp, against the formula in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.train.stepping import GRADIENTS, INITIAL, PLACES, ROWS, TABLE, steps_of, totals


class Oracle:
    """The rule for one array, with its own state."""

    def __init__(self, shape, centered, momentum):
        self.squares, self.mean, self.velocity = np.ones(shape), np.zeros(shape), np.zeros(shape)
        self.centered, self.momentum = centered, momentum

    def step(self, gradient):
        self.squares = 0.9 * self.squares + 0.1 * gradient**2
        self.mean = 0.9 * self.mean + 0.1 * gradient
        spread = self.squares - (self.mean**2 if self.centered else 0)
        move = 0.01 * gradient / np.sqrt(spread + 1e-4)
        self.velocity = self.momentum * self.velocity + move
        return self.velocity


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_divides_by_the_recent_magnitude(centered, momentum):
    def make():
        return tf.train.RMSPropOptimizer(0.01, 0.9, momentum, 1e-4, centered=centered)

    oracle, expected = Oracle(3, centered, momentum), INITIAL.astype(np.float64)
    for step, gradient in zip(steps_of(make, INITIAL, GRADIENTS), GRADIENTS):
        expected = expected - oracle.step(gradient.astype(np.float64))
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("centered", [False, True])
def test_sparse_gradients_touch_their_rows_only(centered):
    def make():
        return tf.train.RMSPropOptimizer(0.01, 0.9, 0.5, 1e-4, centered=centered)

    oracles = [Oracle(2, centered, 0.5) for _ in range(6)]
    expected = TABLE.astype(np.float64)
    for step, rows, places in zip(steps_of(make, TABLE, ROWS, PLACES), ROWS, PLACES):
        for p, total in totals(rows, places).items():
            expected[p] -= oracles[p].step(total)
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)
