from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both

tile_batch = tf.contrib.seq2seq.tile_batch


def test_each_row_is_repeated():
    matrix = np.arange(6).reshape(3, 2)
    state = tf.nn.rnn_cell.LSTMStateTuple(tf.constant(matrix), tf.constant([1.0, 2.0, 3.0]))
    tiled = tile_batch(state, 2)
    assert isinstance(tiled, tf.nn.rnn_cell.LSTMStateTuple)
    assert tiled.c.shape.as_list() == [6, 2]
    c, h = run_both([tiled.c, tiled.h])
    np.testing.assert_array_equal(c, np.repeat(matrix, 2, axis=0))
    np.testing.assert_array_equal(h, [1, 1, 2, 2, 3, 3])


def test_sizes_that_are_not_known():
    x, count = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int32, [])
    tiled = tile_batch(x, count)
    assert tiled.shape.as_list() == [None, 2]
    rows = np.ones((2, 2), np.float32) * [[1], [2]]
    with tf.Session() as sess:
        np.testing.assert_array_equal(
            sess.run(tiled, {x: rows, count: 3}), np.repeat(rows, 3, axis=0)
        )


def test_mistakes():
    with pytest.raises(ValueError, match="is a scalar"):
        tile_batch(tf.constant(1.0), 2)
    with pytest.raises(ValueError, match="known rank"):
        tile_batch(tf.placeholder(tf.float32), 2)
