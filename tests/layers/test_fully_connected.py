"""``tf.layers.dense``."""

import numpy as np
import pytest

import runnel as tf
from tests.nn.weights import run_with_weights, weights

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def names():
    return [v.op.name for v in tf.global_variables()]


@pytest.mark.parametrize("x", [X[0], X, X[None]], ids=["2", "3", "4"])
def test_over_the_last_axis(x):
    y = tf.layers.dense(x, 5, activation=tf.nn.relu)
    assert y.shape.as_list() == [*x.shape[:-1], 5]
    assert names() == ["dense/kernel", "dense/bias"]
    kernel, bias = weights().values()
    expected = np.maximum(x @ kernel + bias, 0)
    np.testing.assert_allclose(run_with_weights(y), expected, rtol=1e-5, atol=1e-6)


def test_without_a_bias_and_with_a_named_activation():
    y = tf.layers.dense(X[0], 5, use_bias=False, activation="tanh", name="h")
    assert names() == ["h/kernel"]
    expected = np.tanh(X[0] @ weights()["h/kernel"])
    np.testing.assert_allclose(run_with_weights(y), expected, rtol=1e-5, atol=1e-6)


def test_names_and_sharing():
    for _ in range(2):
        tf.layers.dense(X[0], 5)
    tf.layers.dense(X[0], 5, name="shared")
    tf.layers.dense(X[0], 5, name="shared", reuse=True)
    with tf.variable_scope("outer", reuse=tf.AUTO_REUSE):
        for _ in range(2):
            tf.layers.dense(X[0], 5, name="shared")
    assert names()[::2] == [
        "dense/kernel",
        "dense_1/kernel",
        "shared/kernel",
        "outer/shared/kernel",
    ]
    with pytest.raises(ValueError, match="shared/kernel already exists"):
        tf.layers.dense(X[0], 5, name="shared")


def test_initializers_and_constraints():
    layer = tf.layers.Dense(
        2,
        kernel_initializer="zeros",
        bias_initializer=tf.constant_initializer(4.0),
        kernel_constraint=tf.nn.relu,
    )
    layer(X)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        kernel, bias = sess.run(layer.variables)
    assert not kernel.any() and (bias == 4).all()
    assert layer.kernel.constraint is tf.nn.relu


def test_the_batch_may_be_unknown():
    x = tf.placeholder(tf.float32, [None, None, 4])
    y = tf.layers.dense(x, 5)
    assert y.shape.as_list() == [None, None, 5]
    assert run_with_weights(y, {x: X}).shape == (2, 3, 5)
    layer = tf.layers.Dense(7)
    assert layer.compute_output_shape([None, 4]).as_list() == [None, 7]


def test_mistakes():
    with pytest.raises(ValueError, match=r"last dimension.*\(2, \?\)"):
        tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 3)
    with pytest.raises(TypeError, match="floating-point inputs, not int32"):
        tf.layers.dense(tf.ones([2, 3], tf.int32), 3)
    with pytest.raises(ValueError, match="min_ndim=2"):
        tf.layers.dense(tf.ones([3]), 3)
    with pytest.raises(ValueError, match="Unknown initializer 'zeroes'.*zeros"):
        tf.layers.dense(X, 3, kernel_initializer="zeroes")
    layer = tf.layers.Dense(3)
    layer(X)
    with pytest.raises(ValueError, match="axis -1 of the shape to be 4, found 6"):
        layer(tf.ones([2, 6]))
