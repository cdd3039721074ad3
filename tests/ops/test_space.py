from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

IMAGE = np.arange(2 * 4 * 6 * 3, dtype=np.float32).reshape(2, 4, 6, 3)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_depth_and_back(data_format) -> None:
    a = IMAGE if data_format == "NHWC" else IMAGE.transpose(0, 3, 1, 2)
    x = tf.placeholder(tf.float32, a.shape)
    deep = tf.space_to_depth(x, 2, data_format=data_format)
    value, back = run_both([deep, tf.depth_to_space(deep, 2, data_format=data_format)], {x: a})
    np.testing.assert_array_equal(back, a)
    first = value[0, 0, 0] if data_format == "NHWC" else value[0, :, 0, 0]
    np.testing.assert_array_equal(first, IMAGE[0, :2, :2].reshape(-1))
    assert deep.dims == value.shape


def test_batch_and_back_with_padding() -> None:
    x = tf.placeholder(tf.float32, [None, 4, 6, 3])
    blocks = tf.space_to_batch_nd(x, [2, 3], [[1, 1], [0, 3]])
    back = tf.batch_to_space_nd(blocks, [2, 3], [[1, 1], [0, 3]])
    value, again = run_both([blocks, back], {x: IMAGE})
    assert value.shape == (12, 3, 3, 3) and blocks.dims == (None, 3, 3, 3)
    np.testing.assert_array_equal(again, IMAGE)
    padded = np.pad(IMAGE, [(0, 0), (1, 1), (0, 3), (0, 0)])
    np.testing.assert_array_equal(value[:2], padded[:, ::2, ::3])
    np.testing.assert_array_equal(value[2:4], padded[:, ::2, 1::3])


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="height of size 3 must be divisible by 2"):
        tf.space_to_depth(tf.zeros([1, 3, 4, 1]), 2)
    with pytest.raises(ValueError, match="depth of size 3 must be divisible by 4"):
        tf.depth_to_space(tf.zeros([1, 3, 4, 3]), 2)
    with pytest.raises(ValueError, match="Dimension 1, padded, of size 5"):
        tf.space_to_batch_nd(tf.zeros([1, 4, 1]), [2], [[0, 1]])
    with pytest.raises(ValueError, match="exceed dimension 1"):
        tf.batch_to_space_nd(tf.zeros([2, 1, 1]), [2], [[2, 1]])
    with pytest.raises(ValueError, match="must be at least 2"):
        tf.space_to_depth(tf.zeros([1, 4, 4, 1]), 1)


def test_gradients() -> None:
    x = np.linspace(0.1, 1, 16).reshape(1, 4, 4, 1)
    assert_derivatives(lambda x: tf.space_to_depth(x, 2) ** 3, x)
    assert_derivatives(lambda x: tf.depth_to_space(x, 2) ** 3, x.reshape(1, 2, 2, 4))
    assert_derivatives(lambda x: tf.space_to_batch_nd(x, [2, 1], [[1, 1], [0, 0]]) ** 3, x)
    assert_derivatives(lambda x: tf.batch_to_space_nd(x, [2], [[1, 0]]) ** 3, x.reshape(2, 2, 4))
