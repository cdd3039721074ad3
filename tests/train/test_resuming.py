"""A job that is stopped and goes on makes the steps that it would have made."""

from __future__ import annotations

import shutil

import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED


def losses(folder, steps: int, level: int, seed: int | None, background: bool) -> list[float]:
    """Trains ``steps`` more steps of a network with dropout on noisy, shuffled data; the losses."""
    with tf.Graph().as_default():
        if seed is not None:
            tf.set_random_seed(seed)
        rows = tf.data.Dataset.range(20).shuffle(7).repeat().map(tf.to_float).batch(8)
        iterator = rows.make_one_shot_iterator()
        position = tf.data.experimental.make_saveable_from_iterator(iterator)
        tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, position)
        x = tf.random_normal([8, 5]) + tf.reshape(iterator.get_next(), [8, 1]) / 20.0
        order = tf.random_shuffle(tf.range(8))
        hidden = tf.layers.dense(tf.gather(x, order), 7, tf.nn.relu)
        hidden = tf.nn.dropout(hidden, rate=0.5)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1) - 1.0))
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.01).minimize(loss, step)
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(save_relative_paths=True))
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.global_jit_level = level
        saving = tf.train.CheckpointSaverHook(
            str(folder), save_steps=2, scaffold=scaffold, save_in_background=background
        )
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(folder),
            scaffold=scaffold,
            hooks=[saving],
            save_checkpoint_secs=None,
            config=config,
        ) as sess:
            return [float(sess.run([loss, train])[0]) for _ in range(steps)]


@pytest.fixture(autouse=True)
def _closed_writers():
    yield
    tf.summary.FileWriterCache.clear()


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_a_stopped_job_goes_on_with_the_same_losses(tmp_path, level, background):
    whole = losses(tmp_path / "whole", 9, level, 7, background)
    first = losses(tmp_path / "parts", 5, level, 7, background)
    assert [*first, *losses(tmp_path / "parts", 4, level, 7, background)] == whole


def test_without_seeds_what_comes_next_is_settled_too(tmp_path):
    first = losses(tmp_path / "one", 5, INTERPRETED, None, background=False)
    tf.summary.FileWriterCache.clear()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    one, two = (losses(tmp_path / name, 4, INTERPRETED, None, False) for name in ("one", "two"))
    assert one == two and len({*first, *one}) == 9


def test_a_checkpoint_without_streams_is_gone_on_from_as_tensorflow_does(tmp_path):
    v, draw = tf.Variable(1.0), tf.random_normal([], seed=3)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(v.initializer)
        begin = [float(sess.run(draw)) for _ in range(2)]
        path = saver.save(sess, str(tmp_path / "m"))
    with tf.Session() as sess:
        saver.restore(sess, path, random_streams=True)
        assert float(sess.run(draw)) == begin[0]
        path = saver.save(sess, str(tmp_path / "m"), random_streams=True)
    with tf.Session() as sess:
        saver.restore(sess, path)
        assert float(sess.run(draw)) == begin[0]
        saver.restore(sess, path, random_streams=True)
        assert float(sess.run(draw)) == begin[1]


def test_the_streams_file_goes_with_its_checkpoint(tmp_path):
    v, draw = tf.Variable(1.0), tf.random_normal([])
    saver = tf.train.Saver(max_to_keep=1)
    with tf.Session() as sess:
        sess.run([v.initializer, draw])
        for step in range(3):
            saver.save(sess, str(tmp_path / "m"), global_step=step, random_streams=True)
    assert [path.name for path in tmp_path.glob("*.streams")] == ["m-2.streams"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"1 2 x": 3}', b'{"x": [1, 2]}', b"\xff", b'{"1 2 x": [-1, 0]}']
)
def test_a_damaged_streams_file_is_told(tmp_path, content):
    v = tf.Variable(1.0)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(v.initializer)
        path = saver.save(sess, str(tmp_path / "m"), random_streams=True)
        (tmp_path / "m.streams").write_bytes(content)
        with pytest.raises(tf.errors.DataLossError, match="m.streams is damaged"):
            saver.restore(sess, path, random_streams=True)
