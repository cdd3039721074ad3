"""The results of layers have the names by which programs ask a loaded graph for them."""

from __future__ import annotations

import pytest

import runnel as tf

# As TensorFlow 1.15.5 names them.
NAMES = {
    "conv1d/conv1d": lambda: tf.layers.conv1d(tf.zeros([1, 8, 3]), 4, 3),
    "conv2d/Conv2D": lambda: tf.layers.conv2d(tf.zeros([1, 8, 8, 3]), 4, 3),
    "conv3d/Conv3D": lambda: tf.layers.conv3d(tf.zeros([1, 4, 4, 4, 3]), 4, 2),
    "Conv/Conv2D": lambda: tf.contrib.layers.conv2d(tf.zeros([1, 8, 8, 3]), 4, 3),
    "max_pooling2d/MaxPool": lambda: tf.layers.max_pooling2d(tf.zeros([1, 8, 8, 3]), 2, 2),
    "average_pooling2d/AvgPool": lambda: tf.layers.average_pooling2d(tf.zeros([1, 8, 8, 3]), 2, 2),
    "MaxPool2D/MaxPool": lambda: tf.contrib.layers.max_pool2d(tf.zeros([1, 8, 8, 3]), 2),
    "flatten/Reshape": lambda: tf.layers.flatten(tf.zeros([1, 8, 8, 3])),
    "Flatten/flatten/Reshape": lambda: tf.contrib.layers.flatten(tf.zeros([1, 8, 8, 3])),
    "dropout/dropout/mul_1": lambda: tf.layers.dropout(tf.zeros([1, 8]), training=True),
    "Dropout/dropout_1/mul_1": lambda: tf.contrib.layers.dropout(tf.zeros([1, 8])),
    "batch_normalization/FusedBatchNormV3": lambda: tf.layers.batch_normalization(
        tf.zeros([1, 8, 8, 3])
    ),
    "dense/BiasAdd": lambda: tf.layers.dense(tf.zeros([1, 8]), 4),
    "out/Softmax": lambda: tf.layers.dense(tf.zeros([1, 8]), 4, tf.nn.softmax, name="out"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_has_an_operation_of_that_name(name):
    with tf.Graph().as_default() as graph:
        NAMES[name]()
        graph.get_operation_by_name(name)
