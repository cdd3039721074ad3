"""What is particular to our tables; the others are compared with TensorFlow's."""

from __future__ import annotations

import pytest

import runnel as tf

lookup = tf.contrib.lookup


def test_tables_of_one_shared_name_are_one():
    pairs = [lookup.KeyValueTensorInitializer(["a"], [n]) for n in (1, 2)]
    tables = [lookup.HashTable(pair, -1, shared_name="words") for pair in pairs]
    with tf.Session() as sess:
        sess.run(tables[0].initializer)
        assert [sess.run(table.lookup(tf.constant("a"))) for table in tables] == [1, 1]


def test_shared_tables_must_be_alike():
    lookup.MutableHashTable(tf.int64, tf.float32, [0.0], shared_name="t", checkpoint=False)
    other = lookup.MutableHashTable(
        tf.int64, tf.float32, [0.0, 0.0], shared_name="t", checkpoint=False
    )
    with tf.Session() as sess:
        first = tf.get_default_graph().get_operations()[1]
        assert first.type == "MutableHashTableOfTensorsV2"
        sess.run(first.outputs[0].op)
        with pytest.raises(tf.errors.InvalidArgumentError, match="another shared_name"):
            sess.run(other.size())


def test_older_names_look_words_up():
    words = ["emerson", "lake"]
    ids = lookup.string_to_index(tf.constant(["lake", "x"]), words)
    texts = lookup.index_to_string(tf.constant([1, 7], tf.int64), words)
    table = lookup.string_to_index_table_from_tensor(words, num_oov_buckets=1)
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        assert sess.run(ids).tolist() == [1, -1]
        assert sess.run(texts).tolist() == [b"lake", b"UNK"]
        assert sess.run(table.lookup(tf.constant(["emerson", "x"]))).tolist() == [0, 2]


def test_a_table_of_users_fills_itself():
    class Doubled(lookup.TableInitializerBase):
        def __init__(self):
            super().__init__(tf.int64, tf.int64)

        def initialize(self, table):
            keys = tf.constant([1, 2], tf.int64)
            return lookup.KeyValueTensorInitializer(keys, keys * 2).initialize(table)

    table = lookup.HashTable(Doubled(), 0)
    assert isinstance(table, lookup.InitializableLookupTableBase)
    assert isinstance(table, lookup.LookupInterface)
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        assert sess.run(table.lookup(tf.constant([2, 3], tf.int64))).tolist() == [4, 0]


def test_a_dense_table_has_its_names():
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, 0, -1, -2)
    assert table.lookup(tf.zeros([2, 3], tf.int64)).get_shape().as_list() == [2, 3]
    keys = tf.constant([5], tf.int64)
    with tf.Session() as sess:
        sess.run(table.insert_or_assign(keys, keys + 1))
        assert sess.run(table.lookup(keys)).tolist() == [6]
        sess.run(table.erase(keys))
        assert sess.run(table.size()) == 0
