"""Tables give what TensorFlow's give, and refuse what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import runnel
from tests.conformance.same_fetches import assert_same_values

reference = pytest.importorskip("tensorflow").compat.v1


def lookups(tf, folder):
    lookup = tf.lookup
    path = folder / "words.txt"
    path.write_bytes(b"emerson\nlake\npalmer\n")
    pairs = lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    static = lookup.StaticHashTable(pairs, -1)
    words = lookup.TextFileInitializer(
        str(path),
        *(tf.string, lookup.TextFileIndex.WHOLE_LINE),
        *(tf.int64, lookup.TextFileIndex.LINE_NUMBER),
    )
    vocabulary = lookup.StaticVocabularyTable(words, 5)
    names = lookup.StaticHashTable(
        lookup.TextFileInitializer(
            str(path),
            *(tf.int64, lookup.TextFileIndex.LINE_NUMBER),
            *(tf.string, lookup.TextFileIndex.WHOLE_LINE),
        ),
        "none",
    )
    sparse = tf.SparseTensor([[0], [2]], ["b", "x"], [3])
    return [
        static.lookup(tf.constant([["a"], ["z"]])),
        static.lookup(sparse),
        static.size(),
        vocabulary.lookup(tf.constant(["lake", "yes", "genesis", "palmer"])),
        vocabulary.size(),
        names.lookup(tf.constant([2, 7, 0], tf.int64)),
    ]


def test_the_values_are_the_same(tmp_path):
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            fetches = lookups(tf, tmp_path)
            sess.run(tf.tables_initializer())
            found.append(sess.run(fetches))
    assert_same_values(*found)


REFUSED = {
    "not filled": (lambda tf, t: t.lookup(tf.constant(["a"])), False),
    "contradiction": (
        lambda tf, t: (
            tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), -1
            ).initializer
        ),
        True,
    ),
    "no such file": (
        lambda tf, t: (
            tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer("/there/is/none", tf.string, -2, tf.int64, -1), -1
            ).initializer
        ),
        True,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name):
    kinds = []
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            pairs = tf.lookup.KeyValueTensorInitializer(["a"], [1])
            fetch = REFUSED[name][0](tf, tf.lookup.StaticHashTable(pairs, -1))
            with pytest.raises(tf.errors.OpError) as caught:
                sess.run(fetch)
            kinds.append(type(caught.value).__name__)
    assert kinds[0] == kinds[1]


def test_a_key_of_another_type_is_refused_when_it_is_asked_for():
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            pairs = tf.lookup.KeyValueTensorInitializer(["a"], [1])
            with pytest.raises(TypeError):
                tf.lookup.StaticHashTable(pairs, -1).lookup(tf.constant([1]))


def test_tables_within_the_function_of_a_dataset(tmp_path):
    tf = runnel
    table = tf.contrib.lookup.index_table_from_tensor(["a", "b"], num_oov_buckets=1)
    back = tf.contrib.lookup.index_to_string_table_from_tensor(["a", "b"])
    dataset = tf.data.Dataset.from_tensor_slices(["b", "x", "a"]).map(
        lambda word: (table.lookup(word), back.lookup(table.lookup(word)))
    )
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as sess:
        sess.run([tf.tables_initializer(), iterator.initializer])
        found = [sess.run(element) for _ in range(3)]
    assert found == [(1, b"b"), (2, b"UNK"), (0, b"a")]


def test_a_table_that_changes():
    tf = runnel
    table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
    put = table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    found = table.lookup(tf.constant(["b", "c"]))
    with tf.Session() as sess:
        assert sess.run(found).tolist() == [-1, -1]
        sess.run(put)
        assert sess.run(found).tolist() == [2, -1]
        assert sess.run(table.size()) == 2
        sess.run(table.remove(tf.constant(["b"])))
        keys, values = sess.run(table.export())
    assert keys.tolist() == [b"a"] and np.array_equal(values, [1])
