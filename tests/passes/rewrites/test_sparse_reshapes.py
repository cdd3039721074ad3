"""Sparse reshapes to the shape that the tensor has: none is left in a step that is optimized."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, session
from tests.execution_modes import MODES, forced

INDICES = np.array([[0, 0], [0, 2], [2, 1]], np.int64)
"""Of a tensor of shape [3, 4]."""


def ranked(rank):
    """A sparse tensor of int64 that is fed, of which only the rank is known."""
    return tf.SparseTensor(
        tf.placeholder(tf.int64, [None, rank]),
        tf.placeholder(tf.int64, [None]),
        tf.placeholder(tf.int64, [rank]),
    )


def kinds(fetches, feeds):
    """The operations of a step that has been optimized."""
    with session(COMPILED) as sess:
        runners = sess._plan(fetches, [], dict.fromkeys(feeds)).schedule.runners
    return {node.op_def.name for runner in runners for node in runner.segment.nodes}


def shapes_alike(shape):
    """Ways in which programs put the shape of a matrix together of its parts."""
    return {
        "itself": shape,
        "two numbers": [shape[0], shape[1]],
        "product and last": tf.stack([tf.reduce_prod(shape[:-1]), shape[-1]]),
        "gathered": tf.stack([tf.gather(shape, 0), tf.gather(shape, tf.rank(shape))]),
        "joined": tf.concat([shape[:1], shape[1:]], 0)[:2],
        "passed on": tf.identity(tf.stack([tf.reduce_sum(shape[0:1]), shape[-1]])),
    }


@pytest.mark.parametrize(
    "way", ["itself", "two numbers", "product and last", "gathered", "passed on"]
)
def test_a_reshape_to_the_own_shape_is_left_out(way):
    sparse = ranked(2)
    reshaped = tf.sparse.reshape(sparse, shapes_alike(sparse.dense_shape)[way])
    feeds = [sparse.indices, sparse.values, sparse.dense_shape]
    assert "SparseReshape" not in kinds([tf.sparse.to_dense(reshaped)], feeds)


def test_a_reshape_to_another_shape_stays():
    sparse = ranked(2)
    turned = tf.sparse.reshape(sparse, [sparse.dense_shape[1], sparse.dense_shape[0]])
    feeds = [sparse.indices, sparse.values, sparse.dense_shape]
    assert "SparseReshape" in kinds([tf.sparse.to_dense(turned)], feeds)


def test_a_dense_reshape_to_the_own_shape_is_left_out():
    x = tf.placeholder(tf.float32, [None, 3])
    for shape in ([tf.shape(x)[0], 3], tf.shape(x), [tf.shape(x)[0], tf.shape(x)[1]]):
        assert "Reshape" not in kinds([tf.reshape(x, shape)], [x])
    for shape in ([3, tf.shape(x)[0]], [tf.shape(x)[0], 1, 3], [tf.shape(-x)[0] // 1, 3, 1]):
        assert "Reshape" in kinds([tf.reshape(x, shape)], [x])


@pytest.mark.parametrize("mode", MODES)
def test_what_is_left_out_changes_nothing(mode):
    sparse = ranked(2)
    shape = sparse.dense_shape
    ways = {
        **shapes_alike(shape),
        "swapped": [shape[1], shape[0]],
        "one twice": [shape[0], shape[0] * shape[1] // shape[0]],
        "flat": [tf.reduce_prod(shape)],
        "backward": shape[::-1],
        "more": [shape[0], 1, shape[1]],
    }
    wanted = np.zeros((3, 4), np.int64)
    wanted[tuple(INDICES.T)] = [5, 6, 7]
    feeds = {sparse.indices: INDICES, sparse.values: [5, 6, 7], shape: [3, 4]}
    found = {way: tf.sparse.to_dense(tf.sparse.reshape(sparse, new)) for way, new in ways.items()}
    shapes = {"swapped": (4, 3), "flat": (12,), "backward": (4, 3), "more": (3, 1, 4)}
    with forced(mode), tf.Session() as sess:
        for _ in range(2):
            got = sess.run(found, feeds)
    for way, array in got.items():
        np.testing.assert_array_equal(array, wanted.reshape(shapes.get(way, (3, 4))), way)


def test_a_reshape_waits_for_what_it_was_told_to_wait_for():
    sparse = ranked(2)
    count = tf.Variable(0)
    with tf.control_dependencies([tf.assign_add(count, 1)]):
        reshaped = tf.sparse.reshape(sparse, sparse.dense_shape)
    feeds = {sparse.indices: INDICES, sparse.values: [5, 6, 7], sparse.dense_shape: [3, 4]}
    with tf.Session() as sess:
        sess.run(count.initializer)
        for _ in range(3):
            sess.run(reshaped, feeds)
        assert sess.run(count) == 3


def test_a_branch_keeps_its_own_reshape():
    sparse, taken = ranked(2), tf.placeholder(tf.bool, [])
    rows = tf.cond(
        taken,
        lambda: tf.sparse.reshape(sparse, [sparse.dense_shape[0], sparse.dense_shape[1]]).indices,
        lambda: sparse.indices + 1,
    )
    feeds = {sparse.indices: INDICES, sparse.values: [5, 6, 7], sparse.dense_shape: [3, 4]}
    with tf.Session() as sess:
        for _ in range(2):
            np.testing.assert_array_equal(sess.run(rows, {**feeds, taken: True}), INDICES)
            np.testing.assert_array_equal(sess.run(rows, {**feeds, taken: False}), INDICES + 1)


def test_known_sizes_of_a_shape_are_constants():
    x = tf.placeholder(tf.float32, [None, 3, 4])
    shape = tf.shape(x)
    for part in (shape[1], shape[1:], shape[-1:], tf.stack([shape[2], 7]), shape[:0:-1]):
        assert kinds([part], [x]) == {"Const"}
    for part in (shape[0], shape[:2], tf.stack([shape[2], shape[0]])):
        assert kinds([part], [x]) > {"Shape"}


@pytest.mark.parametrize("mode", MODES)
def test_parts_of_a_shape_are_what_they_were(mode):
    x = tf.placeholder(tf.float32, [None, 3, 4])
    shape, whole = tf.shape(x), tf.shape(x, out_type=tf.int64)
    parts = [shape[1], shape[1:], shape[-1:], tf.stack([shape[2], 7]), shape[::-1], shape[:0:-1]]
    parts += [whole[1], whole[0:0], tf.stack([whole[2], whole[0]]), tf.stack([shape[1:]])]
    expected = [3, [3, 4], [4], [4, 7], [4, 3, 2], [4, 3], 3, [], [4, 2], [[3, 4]]]
    looped = tf.while_loop(
        lambda i, total: i < 3,
        lambda i, total: (i + 1, total + tf.shape(x[:i])[1] * tf.shape(x)[2]),
        (tf.constant(0), tf.constant(0)),
    )[1]
    with forced(mode), tf.Session() as sess:
        for _ in range(2):
            *got, total = sess.run([*parts, looped], {x: np.zeros((2, 3, 4))})
    assert total == 36
    for tensor, found, wanted in zip(parts, got, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == tensor.dtype.as_numpy_dtype


def test_columns_of_strings_are_looked_up_without_a_reshape():
    words = tf.placeholder(tf.string, [None, 1])
    column = tf.feature_column.categorical_column_with_hash_bucket("word", 10)
    embedded = tf.feature_column.embedding_column(column, 3)
    rows = tf.feature_column.input_layer({"word": words}, [embedded])
    sums = tf.feature_column.linear_model({"word": words}, [column])
    assert kinds([rows, sums], [words]).isdisjoint({"SparseReshape", "Prod"})
