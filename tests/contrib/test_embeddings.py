"""Embeddings of ``tf.contrib.layers``."""

from __future__ import annotations

import numpy as np

import runnel as tf
from tests.both_tiers import run_both

TABLE = np.arange(22, dtype=np.float32).reshape(11, 2)


def test_rows_that_are_asked_for_once_are_the_same_rows():
    ids = tf.placeholder(tf.int64, [None, 3])
    shards = [tf.constant(TABLE[i::2]) for i in range(2)]
    wanted = np.array([[1, 1, 5], [10, 5, 0]])
    rows = tf.contrib.layers.embedding_lookup_unique(shards, ids)
    np.testing.assert_array_equal(run_both(rows, {ids: wanted}), TABLE[wanted])


def test_sparse_ids_that_may_be_missing():
    ids = tf.SparseTensor([[0, 0], [2, 0], [2, 1]], tf.constant([1, 3, -1], tf.int64), [3, 2])
    found = tf.contrib.layers.safe_embedding_lookup_sparse(
        [tf.constant(TABLE[:6]), tf.constant(TABLE[6:])], ids, combiner="sum"
    )
    np.testing.assert_array_equal(run_both(found), [TABLE[1], [0, 0], TABLE[3]])
