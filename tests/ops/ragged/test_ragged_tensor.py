"""Ragged tensors against nested lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf

ROWS = st.lists(st.lists(st.integers(-9, 9), max_size=4), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(ROWS, ROWS)
def test_rows_behave_as_lists_do(a, b):
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = (tf.ragged.constant(rows, tf.int32) for rows in (a, b))
        found = sess.run(
            {
                "same": x,
                "joined": tf.concat([x, y], 0),
                "reversed": x[:, ::-1],
                "tail": x[1:, 1:],
                "sums": tf.reduce_sum(x, axis=1),
                "lengths": x.row_lengths(),
                "back": tf.RaggedTensor.from_tensor(x.to_tensor(), lengths=x.row_lengths()),
                "sparse": tf.RaggedTensor.from_sparse(x.to_sparse()),
            }
        )
    assert found["same"].to_list() == a
    assert found["joined"].to_list() == a + b
    assert found["reversed"].to_list() == [row[::-1] for row in a]
    assert found["tail"].to_list() == [row[1:] for row in a[1:]]
    assert found["sums"].tolist() == [sum(row) for row in a]
    assert found["lengths"].tolist() == [len(row) for row in a]
    assert found["back"].to_list() == a
    assert found["sparse"].to_list() == a


def test_training_through_ragged_rows():
    """Embeddings of words, averaged over sentences of any length."""
    table = tf.Variable(np.ones((5, 2), np.float32))
    words = tf.ragged.placeholder(tf.int32, ragged_rank=1, value_shape=())
    means = tf.reduce_mean(tf.gather(table, words), axis=1)
    (gradient,) = tf.gradients(tf.reduce_sum(means), table)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        value = tf.ragged.constant_value([[0, 1, 1, 4], [2]], np.int32)
        found = sess.run(tf.convert_to_tensor(gradient), {words: value})
    np.testing.assert_allclose(found[:, 0], [0.25, 0.5, 1, 0, 0.25])


def test_a_feed_with_other_ragged_dimensions_is_refused():
    words = tf.ragged.placeholder(tf.int32, ragged_rank=2)
    with tf.Session() as sess, pytest.raises(ValueError):
        sess.run(words, {words: tf.ragged.constant_value([[1]], np.int32)})


def test_rows_that_do_not_fit_are_refused_with_the_shapes():
    ragged = tf.ragged.constant([[1, 2], [3]])
    with pytest.raises(ValueError, match="column"):
        ragged + tf.constant([1, 2, 3])
    with pytest.raises(TypeError, match="nrows"):
        len(ragged)
