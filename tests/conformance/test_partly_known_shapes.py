"""Static shapes where some of what decides them is data: at least what TensorFlow knows."""

import pytest

pytest.importorskip("tensorflow")

import runnel
from tests.conformance.same_program import tensorflow

PROGRAMS = {
    "tile": lambda tf, x, n: tf.tile(x, [n, 1, 2, tf.shape(x)[3]]),
    "tile of a concatenation": lambda tf, x, n: tf.tile(x, tf.concat([[n], [2, 2, 1]], 0)),
    "tile by a shape": lambda tf, x, n: tf.tile(x, tf.shape(x)),
    "pad": lambda tf, x, n: tf.pad(x, [[n, 0], [1, 1], [0, 0], [2, n]]),
    "pad by pairs": lambda tf, x, n: tf.pad(x, tf.stack([[0, n], [1, 1], [0, 0], [2, 3]])),
    "reshape": lambda tf, x, n: tf.reshape(tf.ones([4, 6, 8]), [n, 24]),
    "reshape of a part": lambda tf, x, n: tf.reshape(x, [-1, x.shape[1] * x.shape[2], n]),
    "slice": lambda tf, x, n: tf.slice(x, [n, 0, 0, 0], [2, 3, -1, n]),
    "fill": lambda tf, x, n: tf.fill([n, 3], 0.0),
    "broadcast": lambda tf, x, n: tf.broadcast_to(tf.ones([4, 1]), [n, 4, 6]),
    "resize": lambda tf, x, n: tf.image.resize_bilinear(x, [n, 7]),
    "transposed convolution": lambda tf, x, n: tf.nn.conv2d_transpose(
        x, tf.ones([3, 3, 5, 8]), tf.stack([tf.shape(x)[0], 8, 8, 5]), [1, 2, 2, 1]
    ),
    "scatter": lambda tf, x, n: tf.scatter_nd([[0]], tf.ones([1, 3]), tf.stack([n, 3])),
    "random": lambda tf, x, n: tf.random_uniform([n, 4]),
    "minibatch deviation": lambda tf, x, n: tf.concat(
        [x, tf.tile(tf.reduce_mean(x, [0, 1, 2, 3], keepdims=True), [n, 4, 4, 1])], -1
    ),
}


def _shape(tf, program):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 4, 4, 8])
        found = program(tf, x, tf.placeholder(tf.int32, [])).shape
        return found.as_list()


@pytest.mark.parametrize("name", PROGRAMS)
def test_shape(name):
    known, ours = _shape(tensorflow, PROGRAMS[name]), _shape(runnel, PROGRAMS[name])
    assert len(known) == len(ours)
    assert all(a is None or a == b for a, b in zip(known, ours, strict=True)), (known, ours)
