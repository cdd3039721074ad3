"""Tables in checkpoints: either system goes on with what the other has saved."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()


def mutable_table(lib, *arguments, **options):
    if lib is tf:
        return tf.contrib.lookup.MutableHashTable(*arguments, **options)
    from tensorflow.python.ops.lookup_ops import MutableHashTable

    return MutableHashTable(*arguments, **options)


def program(lib):
    """Tables of two kinds, one of which is in a scope, and one that is not to be saved."""
    with lib.name_scope("scope"):
        words = mutable_table(lib, lib.string, lib.int64, -1, name="words")
    numbers = mutable_table(lib, lib.int64, lib.float32, 0.5, name="numbers")
    own = mutable_table(lib, lib.int64, lib.int64, 0, name="own", checkpoint=False)
    v = lib.get_variable("v", initializer=3.0)
    return words, numbers, own, v


def found(lib, sess, tables):
    words, numbers, own, v = tables
    keys = lib.constant(["a", "b", "c"]), lib.constant([7, 8], lib.int64)
    looked_up = words.lookup(keys[0]), numbers.lookup(keys[1]), own.lookup(keys[1]), v
    return [np.asarray(value).tolist() for value in sess.run(looked_up)]


@pytest.mark.parametrize("one,other", [(tf, reference), (reference, tf), (tf, tf)])
def test_a_table_is_saved_and_restored(tmp_path, one, other):
    path = str(tmp_path / "m")
    with one.Graph().as_default(), one.Session() as sess:
        tables = program(one)
        words, numbers, own, v = tables
        saver = one.train.Saver()
        sess.run(v.initializer)
        sess.run(
            [
                words.insert(one.constant(["a", "c"]), one.constant([1, 3], one.int64)),
                numbers.insert(one.constant([7], one.int64), one.constant([2.5])),
                own.insert(one.constant([7], one.int64), one.constant([9], one.int64)),
            ]
        )
        assert found(one, sess, tables) == [[1, -1, 3], [2.5, 0.5], [9, 0], 3.0]
        saver.save(sess, path)
    with other.Graph().as_default(), other.Session() as sess:
        tables = program(other)
        old = tables[0].insert(other.constant(["b"]), other.constant([8], other.int64))
        saver = other.train.Saver()
        sess.run(old)
        saver.restore(sess, path)
        assert found(other, sess, tables) == [[1, -1, 3], [2.5, 0.5], [0, 0], 3.0]
    names = {name for name, _ in tf.train.list_variables(path)}
    assert names == {"words-keys", "words-values", "numbers-keys", "numbers-values", "v"}
