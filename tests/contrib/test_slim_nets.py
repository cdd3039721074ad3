"""The networks of ``slim.nets`` have the variables, layers and names of TensorFlow 1.15's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import runnel as tf
from runnel.contrib import slim
from runnel.contrib.slim.nets import inception, resnet_utils, resnet_v1
from tests.contrib.network_structure import NETWORKS, structure

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "contrib"


@pytest.mark.parametrize("name", NETWORKS)
def test_structure(name: str) -> None:
    with np.load(RECORDED / "network_structure.npz", allow_pickle=False) as file:
        assert structure(tf, name) == file[name].item().splitlines()


def test_a_network_of_larger_images_gives_logits_for_each_place() -> None:
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [None, 300, 300, 3])
        logits, _ = slim.nets.vgg.vgg_16(images, 5, spatial_squeeze=False)
        assert logits.shape.as_list() == [None, 3, 3, 5]


def test_an_output_stride_that_the_blocks_do_not_reach() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="stride"):
        images = tf.placeholder(tf.float32, [1, 64, 64, 3])
        resnet_v1.resnet_v1_50(images, output_stride=6)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="cannot be reached"):
        images = tf.placeholder(tf.float32, [1, 64, 64, 3])
        resnet_v1.resnet_v1_50(images, output_stride=64)


def test_an_end_point_that_is_not_there() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Mixed_9z"):
        inception.inception_v3_base(tf.placeholder(tf.float32, [1, 299, 299, 3]), "Mixed_9z")
    with pytest.raises(ValueError, match="depth_multiplier"):
        inception.inception_v2_base(None, depth_multiplier=0.0)


def test_padding_that_does_not_depend_on_the_size() -> None:
    """Striding gives every second pixel of what it gives without."""
    images = np.random.RandomState(0).randn(1, 9, 8, 2).astype("float32")
    with tf.Graph().as_default(), tf.Session() as sess:
        whole = resnet_utils.conv2d_same(tf.constant(images), 3, 3, stride=1, scope="c")
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            half = resnet_utils.conv2d_same(tf.constant(images), 3, 3, stride=2, scope="c")
        sess.run(tf.global_variables_initializer())
        found, expected = sess.run([half, whole])
        np.testing.assert_allclose(found, expected[:, ::2, ::2], rtol=1e-5, atol=1e-6)
