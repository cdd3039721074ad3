"""``tf.test.compute_gradient`` against TensorFlow's: the shapes that it takes, and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tensorflow

import runnel

tensorflow.disable_v2_behavior()

VALUE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])


def in_both(program: Any) -> tuple[Any, Any]:
    found = []
    for tf in (runnel, tensorflow):
        with tf.Graph().as_default(), tf.Session():
            found.append(program(tf))
    return found[0], found[1]


@pytest.mark.parametrize("y_shape", [[], [1], [1, 1], (1,), np.array([1]), "TensorShape"], ids=str)
def test_a_scalar_may_be_given_any_shape_of_one_element(y_shape):
    def program(tf):
        x = tf.placeholder(tf.float64, [2, 3])
        shape = tf.TensorShape([1]) if isinstance(y_shape, str) else y_shape
        return tf.test.compute_gradient(x, [2, 3], tf.nn.l2_loss(x), shape, VALUE)

    ours, theirs = in_both(program)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape == (6, 1)
        np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize("kind", [list, tuple, np.array, "TensorShape"], ids=str)
def test_shapes_in_any_form(kind):
    def program(tf):
        as_shape = tf.TensorShape if isinstance(kind, str) else kind
        x = tf.placeholder(tf.float64, [2, 3])
        return tf.test.compute_gradient(x, as_shape([2, 3]), x * x, as_shape([2, 3]), VALUE)

    ours, theirs = in_both(program)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_a_tensor_of_unknown_shape():
    def program(tf):
        x = tf.placeholder(tf.float64, None)
        return tf.test.compute_gradient(x, [2, 3], tf.exp(x / 10.0), [2, 3], VALUE)

    ours, theirs = in_both(program)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_an_empty_tensor():
    def program(tf):
        x = tf.placeholder(tf.float64, [0, 3])
        return tf.test.compute_gradient_error(x, [0, 3], x * x, [0, 3])

    assert in_both(program) == (0.0, 0.0)


@pytest.mark.parametrize("broken", ["gradient", "value"])
def test_a_nan_is_an_error_of_nan(broken):
    def program(tf):
        x = tf.placeholder(tf.float64, [3])
        with_nan = tf.where(x > 0.0, x, tf.sqrt(x)) if broken == "gradient" else tf.log(x)
        return tf.test.compute_gradient_error(x, [3], with_nan, [3], np.array([1.0, -1.0, 2.0]))

    ours, theirs = in_both(program)
    assert np.isnan(ours) and np.isnan(theirs)
