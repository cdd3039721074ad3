"""Conditionals and loops on one of several devices, and across them."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED

LEVELS = [INTERPRETED, COMPILED]


def session(level: int) -> tf.Session:
    config = tf.ConfigProto(device_count={"CPU": 3})
    config.graph_options.optimizer_options.global_jit_level = level
    return tf.Session(config=config)


def power_of_two(n: int, inner: str, outer: str) -> tf.Tensor:
    """A loop whose condition and body are on different devices."""

    def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.device(inner):
            return i + 1, x * 2.0

    with tf.device(outer):
        start = (tf.constant(0), tf.constant(1.0))
        return tf.while_loop(lambda i, x: i < n, body, start)[1]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("devices", [("/cpu:1", "/cpu:1"), ("/cpu:1", "/cpu:2")])
def test_a_loop(level, devices):
    result = power_of_two(10, *devices)
    with tf.device("/cpu:0"):
        shifted = result + 1.0
    with session(level) as sess:
        for _ in range(3):
            assert sess.run([result, shifted]) == [1024.0, 1025.0]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("there", ["/cpu:1", "/cpu:2"])
def test_a_conditional_with_state(level, there):
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:1"):
        v = tf.Variable(1.0)

    def double() -> tf.Tensor:
        with tf.device(there):
            y = x * 2.0
        with tf.control_dependencies([v.assign_add(y)]):
            return tf.identity(y)

    with tf.device("/cpu:1"):
        result = tf.cond(x > 0.0, double, lambda: x - 1.0)
    with session(level) as sess:
        sess.run(v.initializer)
        for _ in range(2):
            assert sess.run(result, {x: 3.0}) == 6.0
            assert sess.run(result, {x: -3.0}) == -4.0
        assert sess.run(v) == 13.0


@pytest.mark.parametrize("level", LEVELS)
def test_the_gradient_of_a_loop_across_devices(level):
    with tf.device("/cpu:2"):
        w = tf.Variable(np.float32([[0.5, 0.1], [-0.2, 0.7]]))

    def body(i: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.device("/cpu:1"):
            return i + 1, tf.tanh(tf.matmul(h, w))

    x = np.float32([[1.0, 2.0]])
    result = tf.while_loop(lambda i, h: i < 3, body, (tf.constant(0), tf.constant(x)))[1]
    gradient = tf.gradients(tf.reduce_sum(result), w)[0]
    with session(level) as sess:
        sess.run(w.initializer)
        found = [sess.run(gradient) for _ in range(2)][-1]
        weights = sess.run(w)

    def total(weights: np.ndarray) -> float:
        h = x.astype(np.float64)
        for _ in range(3):
            h = np.tanh(h @ weights)
        return float(h.sum())

    for place in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[place] = 1e-5
        estimate = (total(weights + step) - total(weights - step)) / 2e-5
        assert found[place] == pytest.approx(estimate, abs=1e-3)
