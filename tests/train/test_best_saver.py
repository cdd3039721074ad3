"""Checkpoints that are kept because they are the best."""

from __future__ import annotations

import math

import pytest

import runnel as tf


def saved(folder):
    return sorted(path.name.removesuffix(".index") for path in folder.glob("*.index"))


@pytest.mark.parametrize("larger", [False, True])
def test_the_best_are_kept_and_the_very_best_is_the_latest(tmp_path, larger):
    sign = 1 if larger else -1
    v = tf.Variable(0, name="v")
    with tf.Session() as sess:
        best = tf.train.BestSaver(tmp_path, max_to_keep=2, larger_is_better=larger)
        names = []
        for step, value in enumerate([1.0, 3.0, math.nan, 2.0, 0.5, 3.0, 4.0]):
            sess.run(tf.assign(v, step))
            names.append(best.save(sess, sign * value, global_step=step))
        kept = [name is not None for name in names]
        assert kept == [True, True, False, True, False, True, True]
        assert saved(tmp_path) == ["best.ckpt-1", "best.ckpt-6"]
        assert best.best_checkpoint == tf.train.latest_checkpoint(tmp_path)
        assert [value for value, _ in best.checkpoints] == [sign * 4.0, sign * 3.0]
        tf.train.Saver().restore(sess, best.best_checkpoint)
        assert sess.run(v) == 6


def test_a_program_that_begins_again_knows_them(tmp_path):
    tf.Variable(0, name="v")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert tf.train.BestSaver(tmp_path).save(sess, 1.0, 1) is not None
        again = tf.train.BestSaver(tmp_path)
        assert again.best_checkpoint == str(tmp_path / "best.ckpt-1")
        assert again.save(sess, 2.0, 2) is None
        assert again.save(sess, 0.5, 3) is not None
        assert saved(tmp_path) == ["best.ckpt-3"]


@pytest.mark.parametrize("content", ["[", "{}x", "[1]", '[{"value": 1}]', '[{"value": "a"}]'])
def test_a_damaged_list_is_refused(tmp_path, content):
    tf.Variable(0)
    (tmp_path / "best_checkpoints.json").write_text(content)
    with pytest.raises(ValueError, match="best_checkpoints.json is damaged"):
        tf.train.BestSaver(tmp_path)


def test_a_list_that_points_elsewhere_is_refused(tmp_path):
    tf.Variable(0)
    (tmp_path / "best_checkpoints.json").write_text('[{"value": 1, "checkpoint": "../x"}]')
    with pytest.raises(ValueError, match="outside"):
        tf.train.BestSaver(tmp_path)
