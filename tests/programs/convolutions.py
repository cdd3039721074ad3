"""Convolutions and pooling, with their gradients."""

from __future__ import annotations

from typing import Any

from tests.programs.program import Program, op, values

SIGNAL = values(2, 7, 3)
IMAGE = values(2, 5, 6, 3, seed=1)
VOLUME = values(1, 4, 4, 4, 2, seed=2)
TAPS = values(3, 3, 2, seed=3)
FILTER = values(3, 2, 3, 4, seed=4)
DEPTHWISE = values(3, 3, 3, 2, seed=5)
POINTWISE = values(1, 1, 6, 2, seed=6)
CUBE = values(2, 2, 2, 2, 3, seed=7)
UP = values(3, 3, 2, 3, seed=8)
SMALL = values(1, 8, 8, 1, low=0.0, high=1.0, seed=9)


def _conv(call: Any, *inputs: Any) -> Program:
    """Sums of many products: two libraries add them up in different orders."""
    return op(call, *inputs, rtol=1e-4, atol=2e-5)


def _small_network(tf: Any, images: Any) -> list[list[Any]]:
    """A convolutional network of two layers, trained for some steps."""
    first = tf.get_variable("first", initializer=values(3, 3, 1, 4, low=-0.5, high=0.5))
    second = tf.get_variable("second", initializer=values(16, 2, low=-0.5, high=0.5, seed=1))
    bias = tf.get_variable("bias", [4], initializer=tf.zeros_initializer())
    hidden = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, first, 2, "SAME"), bias))
    pooled = tf.nn.max_pool(hidden, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    logits = tf.matmul(tf.reshape(pooled, [-1, 16]), second)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1], logits=logits))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    return [[loss], *[[train]] * 5, [loss, first, second, bias]]


PROGRAMS = {
    "conv1d": _conv(lambda tf, x, w: tf.nn.conv1d(x, w, 2, "SAME"), SIGNAL, TAPS),
    "conv2d_same": _conv(lambda tf, x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), IMAGE, FILTER),
    "conv2d_valid_strides": _conv(
        lambda tf, x, w: tf.nn.conv2d(x, w, [1, 2, 3, 1], "VALID"), IMAGE, FILTER
    ),
    "conv2d_dilated": _conv(
        lambda tf, x, w: tf.nn.conv2d(x, w, 1, "VALID", dilations=[1, 2, 2, 1]), IMAGE, FILTER
    ),
    "conv2d_explicit": _conv(
        lambda tf, x, w: tf.nn.conv2d(x, w, 2, [[0, 0], [2, 1], [0, 3], [0, 0]]), IMAGE, FILTER
    ),
    "conv2d_transpose": _conv(
        lambda tf, x, w: tf.nn.conv2d_transpose(x, w, [2, 10, 12, 2], [1, 2, 2, 1]), IMAGE, UP
    ),
    "conv3d": _conv(lambda tf, x, w: tf.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME"), VOLUME, CUBE),
    "depthwise": _conv(
        lambda tf, x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), IMAGE, DEPTHWISE
    ),
    "depthwise_strides": _conv(
        lambda tf, x, w: tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "VALID"), IMAGE, DEPTHWISE
    ),
    "separable": _conv(
        lambda tf, x, d, p: tf.nn.separable_conv2d(x, d, p, [1, 1, 1, 1], "SAME"),
        IMAGE,
        DEPTHWISE,
        POINTWISE,
    ),
    "atrous": _conv(lambda tf, x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME"), IMAGE, FILTER),
    "convolution": _conv(
        lambda tf, x, w: tf.nn.convolution(x, w, "SAME", dilation_rate=[1, 2]), IMAGE, FILTER
    ),
    "max_pool": op(lambda tf, x: tf.nn.max_pool(x, [1, 2, 3, 1], [1, 2, 1, 1], "SAME"), IMAGE),
    "avg_pool": op(lambda tf, x: tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), IMAGE),
    "max_pool3d": op(
        lambda tf, x: tf.nn.max_pool3d(x, [1, 2, 2, 2, 1], [1, 2, 1, 2, 1], "VALID"), VOLUME
    ),
    "avg_pool3d": op(
        lambda tf, x: tf.nn.avg_pool3d(x, [1, 2, 2, 2, 1], [1, 1, 2, 1, 1], "SAME"), VOLUME
    ),
    "pool": op(lambda tf, x: tf.nn.pool(x, [2, 2], "AVG", "VALID", dilation_rate=[2, 1]), IMAGE),
    "small_network": Program(_small_network, (SMALL,), rtol=1e-4, atol=2e-5),
}
