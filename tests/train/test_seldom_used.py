"""Hooks, session managers and checkpoint functions that few programs use."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

import runnel as tf


def saved(folder, value, name="m", **options):
    """A checkpoint of a variable ``v`` of that value; its name."""
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=np.float32(value))
        sess.run(v.initializer)
        return tf.train.Saver(**options).save(sess, str(folder / name))


def test_feed_fn_hook_feeds_each_step():
    x = tf.placeholder(tf.float32, [])
    y = x * 10.0
    given = iter([1.0, 2.0])
    hook = tf.train.FeedFnHook(lambda: {x: next(given)})
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        assert [sess.run(y), sess.run(y)] == [10.0, 20.0]


def test_global_step_waiter_lets_others_go_first():
    step = tf.train.get_or_create_global_step()
    advance, x = tf.assign_add(step, 1), tf.constant(1.0)
    waiter = tf.train.GlobalStepWaiterHook(wait_until_step=3)
    with tf.train.MonitoredSession(hooks=[waiter]) as sess:
        raw = sess.raw_session()
        other = threading.Thread(target=lambda: [raw.run(advance) for _ in range(3)])
        other.start()
        assert sess.run(x) == 1.0
        assert raw.run(step) >= 3
        other.join()


def test_recover_session_says_whether_there_was_a_checkpoint(tmp_path):
    v = tf.get_variable("v", initializer=np.float32(0))
    saver = tf.train.Saver()
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    sess, restored = manager.recover_session("", saver, checkpoint_dir=str(tmp_path))
    with sess:
        assert not restored
        assert not sess.run(tf.is_variable_initialized(v))
    path = saved(tmp_path, 7.0)
    for options in (
        {"checkpoint_dir": str(tmp_path)},
        {"checkpoint_filename_with_path": path},
        {"checkpoint_dir": str(tmp_path), "wait_for_checkpoint": True, "max_wait_secs": 5},
    ):
        sess, restored = manager.recover_session("", saver, **options)
        with sess:
            assert restored and sess.run(v) == 7.0


def test_a_singular_session_begins_from_one_checkpoint(tmp_path):
    old = saved(tmp_path, 3.0, "old")
    saved(tmp_path, 4.0, "new")
    v = tf.get_variable("v", initializer=np.float32(0))
    with tf.train.SingularMonitoredSession(checkpoint_filename_with_path=old) as sess:
        assert sess.run(v) == 3.0


def test_a_scaffold_is_copied_with_changes():
    tf.get_variable("v", [])
    first = tf.train.Scaffold(init_fn=lambda *_: None, local_init_op=tf.no_op(name="mine"))
    op = tf.no_op(name="other")
    copy = tf.train.Scaffold(init_op=op, copy_from_scaffold=first)
    assert copy.init_op is op and copy.local_init_op is first.local_init_op
    with pytest.raises(TypeError, match="scaffold"):
        tf.train.Scaffold(copy_from_scaffold=3)


def test_restoring_one_after_another_gives_the_same(tmp_path):
    names = [f"v{k}" for k in range(4)]
    with tf.Graph().as_default(), tf.Session() as sess:
        for k, name in enumerate(names):
            tf.get_variable(name, initializer=np.float32(k))
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    made = [tf.get_variable(name, []) for name in names]
    saver = tf.train.Saver(restore_sequentially=True)
    with tf.Session() as sess:
        saver.restore(sess, path)
        assert sess.run(made) == [0.0, 1.0, 2.0, 3.0]
    ends = [
        op for op in tf.get_default_graph().get_operations() if op.name.startswith("save/Assign")
    ]
    assert [len(op.control_inputs) for op in ends] == [0, 1, 1, 1]


def test_a_checkpoint_is_looked_into_dated_and_removed(tmp_path):
    path = saved(tmp_path, 2.5)
    reader = tf.train.NewCheckpointReader(path)
    assert reader.get_variable_to_shape_map() == {"v": []}
    assert reader.get_tensor("v") == 2.5 and reader.has_tensor("v")
    (written,) = tf.train.get_checkpoint_mtimes([path, str(tmp_path / "none")])
    assert abs(written - os.path.getmtime(f"{path}.index")) < 1
    state = tf.train.generate_checkpoint_state_proto(str(tmp_path), path)
    assert state.model_checkpoint_path == path
    tf.train.remove_checkpoint(path)
    assert not tf.train.checkpoint_exists(path)
    assert [file.name for file in Path(tmp_path).iterdir()] == ["checkpoint"]


def test_estimators_call_the_hooks_of_each_mode_and_keep_as_many_checkpoints(tmp_path):
    calls = []

    class Called(tf.train.SessionRunHook):
        def __init__(self, name):
            self.name = name

        def end(self, session):
            calls.append((self.name, session._config is not None))

    def model_fn(features, labels, mode):
        loss = tf.reduce_sum(tf.get_variable("w", [2]) * features)
        step = tf.train.get_or_create_global_step()
        return tf.estimator.EstimatorSpec(
            mode,
            predictions={"x": features},
            loss=loss,
            train_op=tf.assign_add(step, 1),
            training_hooks=[Called("training")],
            training_chief_hooks=[Called("chief")],
            evaluation_hooks=[Called("evaluation")],
            prediction_hooks=[Called("prediction")],
        )

    def data():
        return tf.data.Dataset.from_tensors([[1.0, 2.0]]).repeat(6)

    config = tf.estimator.RunConfig(
        session_config=tf.ConfigProto(inter_op_parallelism_threads=1),
        save_checkpoints_steps=1,
        keep_checkpoint_max=2,
    )
    estimator = tf.estimator.Estimator(model_fn, tmp_path, config)
    estimator.train(data)
    assert sorted(calls) == [("chief", True), ("training", True)]
    assert len(list(Path(tmp_path).glob("*.index"))) == 2
    calls.clear()
    estimator.evaluate(data)
    assert len(list(estimator.predict(data))) == 6
    assert calls == [("evaluation", True), ("prediction", True)]
    tf.summary.FileWriterCache.clear()
