"""Tables that steps change, with vectors as values and as keys: what TensorFlow's give."""

from __future__ import annotations

import numpy as np
import pytest

import runnel
from tests.conformance.same_fetches import assert_same_values

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()


def tables(tf):
    """The classes of tables that both have."""
    if tf is runnel:
        return tf.contrib.lookup.MutableHashTable, tf.contrib.lookup.MutableDenseHashTable
    from tensorflow.python.ops import lookup_ops

    return lookup_ops.MutableHashTable, lookup_ops.DenseHashTable


RESERVED = ([0], [-5], [b""], [b"-"], [0, 0], [-1, -1])
"""The keys of dense tables, exported with the others, that mark buckets without one."""


def sorted_export(keys, values):
    rows = [np.atleast_1d(key).tolist() for key in keys]
    order = sorted((i for i in range(len(rows)) if rows[i] not in RESERVED), key=rows.__getitem__)
    return [keys[i] for i in order], [values[i] for i in order]


def vectors(tf):
    table = tables(tf)[0](tf.string, tf.float32, [0.5, -1.0], name="vectors")
    keys = tf.constant(["a", "b", "c"])
    return table, keys, tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), keys[1:2]


def dense(tf):
    table = tables(tf)[1](tf.int64, tf.int64, -1, 0, -5, initial_num_buckets=4, name="dense")
    keys = tf.constant([11, 12, 13], tf.int64)
    return table, keys, tf.constant([1, 2, 3], tf.int64), keys[:2]


def dense_vectors(tf):
    default = tf.constant([7.0, 8.0, 9.0])
    table = tables(tf)[1](tf.string, tf.float32, default, "", "-", name="dense_vectors")
    keys = tf.constant(["x", "y"])
    return table, keys, tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), keys[1:]


def vector_keys(tf):
    table = tables(tf)[1](tf.int64, tf.float32, 0.25, [0, 0], [-1, -1], name="vector_keys")
    keys = tf.constant([[1, 2], [3, 4], [5, 6]], tf.int64)
    return table, keys, tf.constant([1.0, 2.0, 3.0]), keys[2:]


def nested_keys(tf):
    """A table of vectors whose keys come as a matrix."""
    table = tables(tf)[0](tf.int64, tf.int64, [0, 0], name="nested")
    keys = tf.constant([[1, 2], [3, 4]], tf.int64)
    values = tf.reshape(tf.range(8, dtype=tf.int64), [2, 2, 2])
    return table, keys, values, keys[:1]


def crowded(tf):
    """More keys than buckets, many of which want the same one."""
    table = tables(tf)[1](tf.int64, tf.int64, -1, 0, -5, initial_num_buckets=4, name="crowded")
    keys = tf.range(8, 8 * 40, 8, dtype=tf.int64)
    return table, keys, keys + 1, keys[5:]


KINDS = {f.__name__: f for f in (vectors, dense, dense_vectors, vector_keys, nested_keys, crowded)}


@pytest.mark.parametrize("kind", KINDS)
def test_steps_give_the_same(kind):
    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            table, keys, values, some = KINDS[kind](tf)
            insert, remove = table.insert(keys, values), table.remove(some)
            looked_up, size, exported = table.lookup(keys), table.size(), table.export()
            seen = [sess.run([looked_up, size])]
            sess.run(insert)
            seen += [sess.run([looked_up, size]), sorted_export(*sess.run(exported))]
            sess.run(remove)
            seen += [sess.run([looked_up, size]), sorted_export(*sess.run(exported))]
            sess.run(insert)
            sess.run(insert)
            seen.append(sess.run([looked_up, size]))
            found.append(seen)
    assert_same_values(*found)


REFUSED = {
    "a default of another shape": lambda tf: tables(tf)[0](tf.string, tf.float32, [0.0]).insert(
        tf.constant(["a"]), tf.constant([1.0])
    ),
    "values of another size": lambda tf: tables(tf)[1](
        tf.int64, tf.float32, [0.0, 0.0], 0, -1
    ).insert(tf.constant([5], tf.int64), tf.constant([[1.0]])),
    "the empty key is inserted": lambda tf: tables(tf)[1](tf.int64, tf.int64, 0, 0, -1).insert(
        tf.constant([0], tf.int64), tf.constant([1], tf.int64)
    ),
    "the empty key is looked up": lambda tf: tables(tf)[1](tf.int64, tf.int64, 0, 0, -1).lookup(
        tf.constant([0], tf.int64)
    ),
    "the deleted key is inserted": lambda tf: tables(tf)[1](tf.int64, tf.int64, 0, 0, -1).insert(
        tf.constant([-1], tf.int64), tf.constant([1], tf.int64)
    ),
    "the deleted key is removed": lambda tf: tables(tf)[1](tf.int64, tf.int64, 0, 0, -1).remove(
        tf.constant([-1], tf.int64)
    ),
    "keys of another shape": lambda tf: tables(tf)[1](tf.int64, tf.int64, 0, [0, 0], [1, 1]).lookup(
        tf.constant([[1, 2, 3]], tf.int64)
    ),
    "one key for two things": lambda tf: tables(tf)[1](tf.int64, tf.int64, 0, 3, 3).size(),
    "buckets that are no power of two": lambda tf: tables(tf)[1](
        tf.int64, tf.int64, 0, 3, 4, initial_num_buckets=5
    ).size(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name):
    kinds = []
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess:
            try:
                sess.run(REFUSED[name](tf))
                kinds.append(None)
            except (tf.errors.OpError, ValueError) as error:
                kinds.append(type(error).__name__)
    assert kinds[0] == kinds[1] is not None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "nested_keys"])
@pytest.mark.parametrize("one,other", [(runnel, reference), (reference, runnel)])
def test_one_goes_on_with_what_the_other_has_saved(tmp_path, kind, one, other):
    path = str(tmp_path / "m")
    with one.Graph().as_default(), one.Session() as sess:
        table, keys, values, some = KINDS[kind](one)
        sess.run(table.insert(keys, values))
        sess.run(table.remove(some))
        expected = sess.run(table.lookup(keys))
        one.train.Saver().save(sess, path)
    with other.Graph().as_default(), other.Session() as sess:
        table, keys, values, some = KINDS[kind](other)
        sess.run(table.insert(keys, values))
        other.train.Saver().restore(sess, path)
        np.testing.assert_array_equal(sess.run(table.lookup(keys)), expected)


def vocabularies(tf, lookup, folder):
    """``tf.contrib.lookup`` here, and what it was made of in TensorFlow."""
    path = folder / "words.txt"
    path.write_bytes(b"emerson\nlake\npalmer\n")
    words = tf.constant(["lake", "yes", "genesis", "palmer"])
    strong = lookup.StrongHashSpec([17, 42])
    table = lookup.index_table_from_file(str(path), 3, hasher_spec=strong)
    hashed = lookup.IdTableWithHashBuckets(None, 5, strong)
    return [
        table.lookup(words),
        table.size(),
        hashed.lookup(words),
        lookup.index_table_from_file(str(path), default_value=9, vocab_size=2).lookup(words),
        lookup.index_table_from_tensor(["yes", "lake"], 4).lookup(words),
        lookup.index_table_from_tensor([7, 5], 2, dtype=tf.int32).lookup(tf.constant([5, 6, 7])),
        lookup.index_to_string_table_from_file(str(path), default_value="?").lookup(
            tf.constant([2, 0, 3], tf.int64)
        ),
        lookup.index_to_string_table_from_tensor(["a", "b"]).lookup(tf.constant([1, 2], tf.int64)),
        lookup.HashTable(lookup.TextFileIdTableInitializer(str(path)), -1).lookup(words),
        lookup.HashTable(lookup.TextFileStringTableInitializer(str(path)), "?").lookup(
            tf.constant([1, 4], tf.int64)
        ),
    ]


def test_vocabularies_give_the_same(tmp_path):
    from tensorflow.python.ops import lookup_ops

    found = []
    for tf, lookup in ((runnel, runnel.contrib.lookup), (reference, lookup_ops)):
        with tf.Graph().as_default(), tf.Session() as sess:
            fetches = vocabularies(tf, lookup, tmp_path)
            sess.run(tf.tables_initializer())
            found.append(sess.run(fetches))
    assert_same_values(*found)
