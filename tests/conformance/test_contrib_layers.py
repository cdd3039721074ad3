"""``tf.contrib.layers`` against the same layers written with TensorFlow's own operations.

TensorFlow 2.21 has no ``tf.contrib``: what it computes is written out there with ``get_variable``,
under the names that checkpoints of TensorFlow 1 have.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import runnel
from tests.conformance.same_network import compare_network

IMAGES = np.random.default_rng(0).normal(size=(3, 6, 6, 4)).astype(np.float32)
ROWS = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)


def _variable(tf, name, shape, trainable=True):
    return tf.get_variable(name, shape, trainable=trainable)


def _normalized(tf, x, scale=False):
    """``batch_norm`` in training, rows as images of one pixel, as TensorFlow has it."""
    with tf.variable_scope("BatchNorm"):
        depth = x.shape[-1]
        made = {}
        # TensorFlow 1.15 makes gamma first for images, and beta first for rows.
        for name in ("gamma", "beta") if len(x.shape) == 4 else ("beta", "gamma"):
            if name == "beta" or scale:
                made[name] = _variable(tf, name, [depth])
        beta, gamma = made["beta"], made.get("gamma", tf.ones([depth]))
        _variable(tf, "moving_mean", [depth], trainable=False)
        _variable(tf, "moving_variance", [depth], trainable=False)
        image = x if len(x.shape) == 4 else tf.reshape(x, [-1, 1, 1, depth])
        y, _, _ = tf.nn.fused_batch_norm(image, gamma, beta, epsilon=0.001)
        return tf.reshape(y, tf.shape(x))


def test_fully_connected():
    def build(tf, x):
        if tf is runnel:
            layers = tf.contrib.layers
            y = layers.fully_connected(x, 6, scope="first")
            y = layers.fully_connected(y, 4, tf.nn.tanh, normalizer_fn=layers.batch_norm)
            return layers.linear(y, 3, biases_initializer=None)
        with tf.variable_scope("first"):
            w, b = _variable(tf, "weights", [7, 6]), _variable(tf, "biases", [6])
            y = tf.nn.relu(tf.matmul(x, w) + b)
        with tf.variable_scope("fully_connected"):
            y = tf.tanh(_normalized(tf, tf.matmul(y, _variable(tf, "weights", [6, 4]))))
        with tf.variable_scope("fully_connected_1"):
            return tf.matmul(y, _variable(tf, "weights", [4, 3]))

    compare_network(build, ROWS)


def test_convolutions_with_defaults_from_a_scope():
    def build(tf, x):
        if tf is runnel:
            slim = tf.contrib.slim
            with (
                slim.arg_scope(
                    [slim.conv2d, slim.conv2d_transpose],
                    normalizer_fn=slim.batch_norm,
                    normalizer_params={"scale": True, "is_training": True},
                ),
                slim.arg_scope([slim.conv2d], padding="VALID", activation_fn=tf.nn.elu),
            ):
                y = slim.repeat(x, 2, slim.conv2d, 5, [3, 3], scope="conv")
                y = slim.conv2d(y, 3, 1, 2, padding="SAME", normalizer_fn=None)
                y = slim.conv2d_transpose(y, 2, [3, 3], stride=2)
            return slim.flatten(y)
        y = x
        with tf.variable_scope("conv"):
            for number, depth in enumerate([4, 5], 1):
                with tf.variable_scope(f"conv_{number}"):
                    w = _variable(tf, "weights", [3, 3, depth, 5])
                    y = tf.nn.conv2d(y, w, [1, 1, 1, 1], "VALID")
                    y = tf.nn.elu(_normalized(tf, y, scale=True))
        with tf.variable_scope("Conv"):
            w, b = _variable(tf, "weights", [1, 1, 5, 3]), _variable(tf, "biases", [3])
            y = tf.nn.elu(tf.nn.conv2d(y, w, [1, 2, 2, 1], "SAME") + b)
        with tf.variable_scope("Conv2d_transpose"):
            w = _variable(tf, "weights", [3, 3, 2, 3])
            y = tf.nn.conv2d_transpose(y, w, [3, 2, 2, 2], [1, 2, 2, 1], "SAME")
            y = tf.nn.relu(_normalized(tf, y, scale=True))
        return tf.reshape(y, [3, 8])

    compare_network(build, IMAGES, rtol=1e-3, atol=1e-4)


def test_separable_convolutions_and_pools():
    def build(tf, x):
        if tf is runnel:
            layers = tf.contrib.layers
            y = layers.separable_conv2d(x, 6, [3, 3], depth_multiplier=2)
            y = layers.max_pool2d(y, [2, 2])
            y = layers.separable_conv2d(y, None, 3, activation_fn=None, scope="depthwise")
            return layers.avg_pool2d(y, 2, stride=1)
        with tf.variable_scope("SeparableConv2d"):
            deep = _variable(tf, "depthwise_weights", [3, 3, 4, 2])
            point = _variable(tf, "pointwise_weights", [1, 1, 8, 6])
            b = _variable(tf, "biases", [6])
            y = tf.nn.relu(tf.nn.separable_conv2d(x, deep, point, [1, 1, 1, 1], "SAME") + b)
        y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        with tf.variable_scope("depthwise"):
            deep, b = _variable(tf, "depthwise_weights", [3, 3, 6, 1]), _variable(tf, "biases", [6])
            y = tf.nn.depthwise_conv2d(y, deep, [1, 1, 1, 1], "SAME") + b
        return tf.nn.avg_pool(y, [1, 2, 2, 1], [1, 1, 1, 1], "VALID")

    compare_network(build, IMAGES)


@pytest.mark.parametrize("kind", ["layer", "instance", "group"])
def test_normalisation_within_a_sample(kind):
    def build(tf, x):
        if tf is runnel:
            layers = tf.contrib.layers
            if kind == "group":
                return layers.group_norm(x, groups=2)
            return getattr(layers, f"{kind}_norm")(x)
        axes, epsilon = {
            "layer": ([1, 2, 3], 1e-12),
            "instance": ([1, 2], 1e-6),
            "group": ([1, 2, 4], 1e-6),
        }[kind]
        with tf.variable_scope(f"{kind.title()}Norm"):
            beta, gamma = _variable(tf, "beta", [4]), _variable(tf, "gamma", [4])
            grouped = tf.reshape(x, [3, 6, 6, 2, 2]) if kind == "group" else x
            mean, variance = tf.nn.moments(grouped, axes, keep_dims=True)
            y = (grouped - mean) / tf.sqrt(variance + epsilon)
            return tf.reshape(y, [3, 6, 6, 4]) * gamma + beta

    compare_network(build, IMAGES, atol=1e-4)


def test_small_layers():
    def build(tf, x):
        if tf is runnel:
            layers = tf.contrib.layers
            return [
                layers.unit_norm(x, 1),
                layers.softmax(x),
                layers.one_hot_encoding(tf.constant([1, 0]), 3),
                layers.dropout(x, 0.3, is_training=False),
                layers.bias_add(x, tf.nn.relu),
            ]
        with tf.variable_scope("BiasAdd"):
            biased = tf.nn.relu(x + _variable(tf, "biases", [7]))
        return [
            x / tf.sqrt(1e-7 + tf.reduce_sum(x * x, 1, keepdims=True)),
            tf.nn.softmax(x),
            tf.one_hot([1, 0], 3),
            tf.identity(x),
            biased,
        ]

    compare_network(build, ROWS)
