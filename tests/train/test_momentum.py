"""Momentum, against the formula in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.train.stepping import GRADIENTS, INITIAL, PLACES, ROWS, TABLE, steps_of, totals


@pytest.mark.parametrize("nesterov", [False, True])
def test_accumulates_gradients(nesterov):
    def make():
        return tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=nesterov)

    expected, accumulated = INITIAL.astype(np.float64), np.zeros(3)
    for step, gradient in zip(steps_of(make, INITIAL, GRADIENTS), GRADIENTS):
        accumulated = 0.9 * accumulated + gradient
        ahead = gradient + 0.9 * accumulated if nesterov else accumulated
        expected = expected - 0.1 * ahead
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("resource", [False, True])
def test_only_rows_with_a_gradient_move(resource):
    found = steps_of(
        lambda: tf.train.MomentumOptimizer(0.1, 0.9), TABLE, ROWS, PLACES, resource=resource
    )
    expected, accumulated = TABLE.astype(np.float64), np.zeros((6, 2))
    for step, rows, places in zip(found, ROWS, PLACES):
        for place, total in totals(rows, places).items():
            accumulated[place] = 0.9 * accumulated[place] + total
            expected[place] -= 0.1 * accumulated[place]
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)
