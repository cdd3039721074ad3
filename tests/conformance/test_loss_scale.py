"""Dynamic loss scaling beside TensorFlow's, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel

pytest.importorskip("tensorflow")


def _history(tf: Any, package: Any, factors: list[float]) -> list[np.ndarray]:
    """The variable, the first moment and the loss scale after each step."""
    with tf.Graph().as_default():
        v = tf.Variable([1.0, -2.0])
        factor = tf.placeholder(tf.float32, [])
        scale = package.DynamicLossScale(initial_loss_scale=64, increment_period=3, multiplier=4.0)
        inner = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer = package.MixedPrecisionLossScaleOptimizer(inner, scale)
        train = optimizer.minimize(tf.reduce_sum(v * v * factor))
        watched = [v, inner.get_slot(v, "momentum"), scale()]
        found = []
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for value in factors:
                session.run(train, {factor: value})
                found.append(np.concatenate([np.ravel(x) for x in session.run(watched)]))
        return found


def test_every_step_is_tensorflows():
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_v2_behavior()
    infinite = float("inf")
    factors = [1.0, 1.0, 1.0, 2.0, infinite, 1.0, 1.0, 1.0, 1.0, infinite, infinite, 0.5]
    theirs = _history(tensorflow, tensorflow.mixed_precision, factors)
    ours = _history(runnel, runnel.train.experimental, factors)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
