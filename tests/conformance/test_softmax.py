"""Softmax and log-softmax against TensorFlow."""

import numpy as np
import pytest

from tests.conformance.side_by_side import EVERY_FLOAT, compare, compare_in

pytest.importorskip("tensorflow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)) * 3
CUBE = RNG.normal(size=(2, 3, 4))


@EVERY_FLOAT
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name, dtype):
    compare_in(dtype, lambda tf, x: getattr(tf.nn, name)(x), X)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, -2, -1])
def test_softmax_over_an_axis(name, axis):
    compare_in("float64", lambda tf, x: getattr(tf.nn, name)(x, axis=axis), CUBE, order=2)


def test_softmax_with_a_partly_known_shape():
    compare_in("float32", lambda tf, x: tf.nn.softmax(x, axis=0), X, shapes=[[None, 5]])


def test_softmax_of_special_values():
    x = np.array([[-np.inf, 1], [-np.inf, -np.inf], [88, 89], [3e38, -3e38]], np.float32)
    compare(lambda tf, t: [tf.nn.softmax(t), tf.nn.log_softmax(t)], x, order=0)
