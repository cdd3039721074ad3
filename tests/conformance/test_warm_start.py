"""Variables that begin with rows of a checkpoint, moved from one vocabulary to another."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as reference

import runnel as tf

OLD = ["apple", "banana", "guava", "orange"]
NEW = ["orange", "kiwi", "apple", "fig", "banana"]
OLD_ROWS = np.arange(8.0, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def saved(tmp_path):
    (tmp_path / "old.txt").write_text("\n".join(OLD) + "\n")
    (tmp_path / "new.txt").write_text("\n".join(NEW) + "\n")
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("rows", initializer=OLD_ROWS)
        tf.get_variable("columns", initializer=OLD_ROWS.T.copy())
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, str(tmp_path / "m"))
    return tmp_path


def started(lib, folder, name, axis, parts, used, backup, resource):
    with lib.Graph().as_default(), lib.Session() as sess:
        shape = [6, 2] if axis == 0 else [2, 6]
        lib.get_variable(
            *("v", shape, lib.float32),
            initializer=lib.constant_initializer(-5.0),
            partitioner=lib.fixed_size_partitioner(parts, axis=0) if parts > 1 else None,
            use_resource=resource,
        )
        info = lib.train.VocabInfo(
            *(str(folder / "new.txt"), 5, 1, str(folder / "old.txt"), used),
            backup_initializer=lib.ones_initializer() if backup else None,
            axis=axis,
        )
        lib.train.warm_start(str(folder / "m"), "v.*", {"v": info}, {"v": name})
        sess.run(lib.global_variables_initializer())
        values = sess.run(lib.global_variables())
    return np.concatenate(values, axis=0)


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("backup", [False, True])
@pytest.mark.parametrize("used", [-1, 2])
@pytest.mark.parametrize(
    ("name", "axis", "parts"), [("rows", 0, 1), ("rows", 0, 2), ("columns", 1, 1)]
)
def test_words_keep_their_rows(saved, name, axis, parts, used, backup, resource):
    if axis == 1 and used >= 0:
        pytest.skip("TensorFlow does not look at old_vocab_size there")
    arguments = (saved, name, axis, parts, used, backup, resource)
    found = started(tf, *arguments)
    np.testing.assert_array_equal(found, started(reference, *arguments))
    rows = found if axis == 0 else found.T
    np.testing.assert_array_equal(rows[2], OLD_ROWS[0])
