from __future__ import annotations

import pytest

import runnel as tf
from tests.both_tiers import run_both


def test_slices_become_a_tensor_wherever_one_is_expected() -> None:
    slices = tf.IndexedSlices(
        tf.constant([[1.0], [2.0], [4.0]]), tf.constant([2, 0, 2]), tf.constant([4, 1])
    )
    dense = tf.convert_to_tensor(slices)
    assert dense.dims == (4, 1)
    assert run_both(dense).tolist() == [[2], [0], [5], [0]]
    assert run_both(tf.reshape(slices, [-1])).tolist() == [2, 0, 5, 0]


def test_the_number_of_rows_may_be_data() -> None:
    x = tf.placeholder(tf.float32, [None, 1])
    slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([1]), tf.shape(x))
    assert run_both(tf.convert_to_tensor(slices), {x: [[0], [0], [0]]}).tolist() == [[0], [1], [0]]


def test_slices_are_fetched_and_fed_as_they_are() -> None:
    slices = tf.IndexedSlices(
        tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [None]), tf.constant([3])
    )
    with tf.Session() as sess:
        fetched = sess.run(slices, {slices: ([5.0, 6.0], [2, 0])})
        dense = sess.run(tf.convert_to_tensor(slices), {slices: ([5.0, 6.0], [2, 0])})
    assert fetched.values.tolist() == [5, 6] and fetched.indices.tolist() == [2, 0]
    assert fetched.dense_shape.tolist() == [3]
    assert dense.tolist() == [6, 0, 5]


def test_mistakes() -> None:
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    with pytest.raises(ValueError, match="dense_shape"):
        tf.convert_to_tensor(slices)
    whole = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]), tf.constant([2]))
    with pytest.raises(ValueError, match="float32 cannot become a tensor of int32"):
        tf.convert_to_tensor(whole, dtype=tf.int32)
