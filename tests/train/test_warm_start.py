"""Mistakes in vocabularies, and what the user is told about them."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf


def test_vocabularies_that_do_not_fit_are_told(tmp_path):
    (tmp_path / "old.txt").write_text("a\nb\nc\n")
    (tmp_path / "new.txt").write_text("c\nd\n")
    w = tf.get_variable("w", initializer=np.arange(6.0).reshape(3, 2))
    with tf.Session() as sess:
        sess.run(w.initializer)
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))

    def start(shape, new, old=-1, axis=0, name="v"):
        with tf.Graph().as_default(), tf.Session() as sess:
            v = tf.get_variable("v", shape, tf.float64)
            names = (str(tmp_path / "new.txt"), new, 1, str(tmp_path / "old.txt"), old)
            info = tf.train.VocabInfo(*names, axis=axis)
            tf.train.warm_start(path, "v", {name: info}, {"v": "w"})
            sess.run(tf.global_variables_initializer())
            return sess.run(v)

    assert start([3, 2], 2).tolist() == [[4.0, 5.0], [0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match="has 2 words, fewer than 7"):
        start([8, 2], 7)
    with pytest.raises(ValueError, match=r"has the shape \[5, 2\]; with 3 words and buckets"):
        start([5, 2], 2)
    with pytest.raises(ValueError, match="axis of a vocabulary is 0 or 1, not 2"):
        start([3, 2], 2, axis=2)
    with pytest.raises(ValueError, match="No variable that is warm-started is called other"):
        start([3, 2], 2, name="other")
