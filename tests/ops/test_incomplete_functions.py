"""The incomplete gamma functions in 16 bits, for which TensorFlow has no kernel on a CPU."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import runnel as tf
from tests.both_tiers import run_both


@pytest.mark.parametrize("kind, tolerance", [(np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)])
def test_values_and_gradients(kind, tolerance):
    a, x = np.array([0.5, 1.0, 4.0], kind), np.array([[0.25], [2.0]], kind)
    order, point = tf.constant(a), tf.constant(x)
    lower, upper = tf.igamma(order, point), tf.igammac(order, point)
    values = run_both([lower, upper, *tf.gradients(lower, [order, point])])
    wide = a.astype(np.float64), x.astype(np.float64)
    below = scipy.special.gammainc(*wide)
    np.testing.assert_allclose(values[0].astype(np.float64), below, tolerance, tolerance)
    np.testing.assert_allclose(values[1].astype(np.float64), 1 - below, tolerance, tolerance)
    step = 1e-6
    slope = scipy.special.gammainc(wide[0] + step, wide[1]) - below
    by_order = np.sum(slope / step, axis=0)
    np.testing.assert_allclose(values[2].astype(np.float64), by_order, 4 * tolerance, tolerance)
    density = wide[1] ** (wide[0] - 1) * np.exp(-wide[1]) / scipy.special.gamma(wide[0])
    by_point = np.sum(density, axis=1, keepdims=True)
    np.testing.assert_allclose(values[3].astype(np.float64), by_point, 4 * tolerance, tolerance)
