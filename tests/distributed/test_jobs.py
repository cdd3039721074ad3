"""Saving, exporting and asking about sessions that run on a task of a cluster."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf


@pytest.fixture(scope="module")
def target():
    server = tf.train.Server.create_local_server()
    yield server.target
    server.stop()


def test_values_of_a_task_are_saved_in_the_background_and_as_a_model(target, tmp_path):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        x = tf.placeholder(tf.float32, [2], name="x")
        w = tf.get_variable("w", initializer=np.float32([2.0, 3.0]))
        sess.run(tf.global_variables_initializer())
        saver = tf.train.Saver(sharded=True)
        saving = saver.save_in_background(sess, tmp_path / "m", global_step=7)
        sess.run(tf.assign_add(w, [1.0, 1.0]))
        path = saving.wait()
        tf.train.save_safetensors(sess, tmp_path / "m.safetensors")
        tf.saved_model.simple_save(sess, tmp_path / "model", {"x": x}, {"y": x * w})
    np.testing.assert_array_equal(tf.train.load_variable(path, "w"), [2.0, 3.0])
    found = tf.train.load_variable(str(tmp_path / "m.safetensors"), "w")
    np.testing.assert_array_equal(found, [3.0, 4.0])
    with tf.Graph().as_default(), tf.Session(target) as sess:
        model = tf.saved_model.load(sess, ["serve"], tmp_path / "model")
        y = model.signature_def["serving_default"].outputs["y"].name
        np.testing.assert_array_equal(sess.run(y, {"x:0": [1.0, 2.0]}), [3.0, 8.0])


def test_what_only_a_session_of_this_process_can_do_says_so(target):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        y = tf.constant(2.0) * 3.0
        with pytest.raises(tf.errors.UnimplementedError, match="only local ones"):
            tf.debug.WatchedSession(sess).run(y)
        assert sess.run(y) == 6.0
