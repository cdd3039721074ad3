from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session

TABLE = np.arange(22, dtype=np.float32).reshape(11, 2)


def shards(strategy: str, count: int) -> list[np.ndarray]:
    if strategy == "mod":
        return [TABLE[i::count] for i in range(count)]
    return np.array_split(TABLE, count)


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize("kind", [tf.int32, tf.int64])
def test_shards_together_are_the_table(strategy, count, kind) -> None:
    tables = [tf.constant(shard) for shard in shards(strategy, count)]
    ids = tf.placeholder(kind, [None, 2])
    rows = tf.nn.embedding_lookup(tables, ids, partition_strategy=strategy)
    assert rows.dims == (None, 2, 2)
    wanted = np.array([[0, 10], [3, 3], [7, 4]])
    np.testing.assert_array_equal(run_both(rows, {ids: wanted}), TABLE[wanted])


def test_rows_of_shards_of_unknown_size() -> None:
    tables = [tf.placeholder(tf.float32, [None, 2]) for _ in range(2)]
    ids = tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(tables, ids, partition_strategy="div")
    feed = dict(zip(tables, shards("div", 2), strict=True)) | {ids: [0, 5, 6, 10]}
    np.testing.assert_array_equal(run_both(rows, feed), TABLE[[0, 5, 6, 10]])


def test_the_gradient_goes_to_the_right_shards_and_stays_sparse() -> None:
    tables = [tf.placeholder(tf.float32, [4, 2]), tf.placeholder(tf.float32, [4, 2])]
    ids = tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(tables, ids)
    grads = tf.gradients(tf.reduce_sum(rows), tables)
    assert all(isinstance(g, tf.IndexedSlices) for g in grads)
    feed = {t: np.zeros((4, 2), np.float32) for t in tables} | {ids: [0, 1, 3, 1]}
    dense = run_both([tf.convert_to_tensor(g) for g in grads], feed)
    assert dense[0].tolist() == [[1, 1], [0, 0], [0, 0], [0, 0]]
    assert dense[1].tolist() == [[2, 2], [1, 1], [0, 0], [0, 0]]


def test_norms_are_clipped() -> None:
    ids = tf.placeholder(tf.int32, [None])
    table = tf.constant([[3.0, 4.0], [0.3, 0.4]])
    rows = run_both(tf.nn.embedding_lookup(table, ids, max_norm=1.0), {ids: [0, 1]})
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="at least one"):
        tf.nn.embedding_lookup([], [0])
    with pytest.raises(ValueError, match="partition strategy: rows"):
        tf.nn.embedding_lookup([tf.zeros([2, 2])] * 2, [0], partition_strategy="rows")
    ids = tf.placeholder(tf.int32, [1])
    rows = tf.nn.embedding_lookup([tf.zeros([2, 2])] * 2, ids)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
            sess.run(rows, {ids: [4]})
