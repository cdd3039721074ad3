"""Norms and moments against TensorFlow."""

import numpy as np
import pytest

from tests.conformance.side_by_side import EVERY_FLOAT, compare, compare_in

pytest.importorskip("tensorflow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)) * 3
CUBE = RNG.normal(size=(2, 3, 4))
VECTOR = RNG.normal(size=4)


@EVERY_FLOAT
def test_l2_loss(dtype):
    compare_in(dtype, lambda tf, x: tf.nn.l2_loss(x), VECTOR)


@pytest.mark.parametrize("axis", [None, 0, [0, 1]])
def test_l2_normalize(axis):
    compare_in("float64", lambda tf, x: tf.nn.l2_normalize(x, axis), X, order=2)


@EVERY_FLOAT
def test_moments(dtype):
    compare_in(dtype, lambda tf, x: tf.nn.moments(x, [0, 1]), CUBE)
    compare_in(dtype, lambda tf, x: tf.nn.moments(x, [-1], keep_dims=True), CUBE)


def test_sufficient_statistics():
    def build(tf, x, shift):
        count, mean_ss, var_ss, _ = tf.nn.sufficient_statistics(x, [0, 2], shift=shift)
        return [count, mean_ss, var_ss, *tf.nn.normalize_moments(count, mean_ss, var_ss, shift)]

    shift = np.ones((3, 1))
    compare_in("float64", build, CUBE, shift)
    compare_in("float64", build, CUBE, shift, shapes=[[None, 3, None], [3, 1]], rtol=1e-9)


def test_weighted_moments():
    weights = RNG.uniform(0.5, 1.5, (2, 3, 1))
    compare_in("float64", lambda tf, x, w: tf.nn.weighted_moments(x, [0, 1], w), CUBE, weights)


def test_zero_fraction():
    compare(lambda tf, x: tf.nn.zero_fraction(x), np.array([[0, 1, 0, 2.0]], np.float32), order=0)
