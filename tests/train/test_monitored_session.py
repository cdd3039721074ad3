"""Monitored sessions: hooks, checkpoints, recovery, and their end."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import runnel as tf


@pytest.fixture(autouse=True)
def writers_are_closed():
    yield
    tf.summary.FileWriterCache.clear()


def counting():
    """A global step, and what advances it."""
    step = tf.train.get_or_create_global_step()
    return step, tf.assign_add(step, 1)


class Recording(tf.train.SessionRunHook):
    def __init__(self, fetches=None, feed_dict=None):
        self.calls = []
        self.results = []
        self._args = tf.train.SessionRunArgs(fetches, feed_dict) if fetches is not None else None

    def begin(self):
        self.calls.append("begin")

    def after_create_session(self, session, coord):
        self.calls.append("created")

    def before_run(self, run_context):
        self.calls.append("before")
        return self._args

    def after_run(self, run_context, run_values):
        self.calls.append("after")
        self.results.append(run_values.results)

    def end(self, session):
        self.calls.append("end")


def test_hooks_are_called_around_each_step():
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(2.0)
    hook = Recording([x * v, {"v": v}], {x: 3.0})
    silent = Recording()
    more = v + 1.0
    with tf.train.MonitoredSession(hooks=[hook, silent]) as sess:
        assert sess.run(more) == 3.0
        assert sess.run({"a": v}) == {"a": 2.0}
        with pytest.raises(RuntimeError, match="is fed by the caller and by"):
            sess.run(v, {x: 1.0})
        assert sess.graph.finalized
    assert hook.calls == [
        *("begin", "created", "before", "after", "before", "after", "before", "end")
    ]
    assert hook.results == [[6.0, {"v": 2.0}]] * 2
    assert silent.results == [None, None]
    with pytest.raises(RuntimeError, match="should_stop"):
        sess.run(v)


def test_a_hook_stops_the_loop_at_a_step():
    step, advance = counting()
    for hook, last in ((tf.train.StopAtStepHook(num_steps=4), 4),):
        with tf.train.MonitoredSession(hooks=[hook]) as sess:
            while not sess.should_stop():
                found = sess.run(advance)
        assert found == last


def test_the_end_of_the_input_is_the_end_of_the_session():
    queue = tf.train.range_input_producer(5, num_epochs=1, shuffle=False)
    element = queue.dequeue()
    hook = Recording()
    seen = []
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        while not sess.should_stop():
            seen.append(int(sess.run(element)))
    assert seen == list(range(5)) and hook.calls[-1] == "end"


def test_an_error_ends_the_session_and_leaves_the_block():
    hook = Recording()
    x = tf.placeholder(tf.float32, [])
    checked = tf.check_numerics(x, "bad")
    with (
        pytest.raises(tf.errors.InvalidArgumentError),
        tf.train.MonitoredSession(hooks=[hook]) as sess,
    ):
        sess.run(checked, {x: np.nan})
    assert "end" not in hook.calls


def test_a_session_that_is_lost_goes_on_from_the_newest_checkpoint(tmp_path):
    step, advance = counting()
    lost = [3]

    def maybe_lost(value):
        if lost and value == lost[0]:
            lost.pop()
            raise tf.errors.AbortedError(None, None, "the task is gone")
        return value

    seen = tf.py_func(maybe_lost, [advance], tf.int64)
    hook = Recording()
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=tmp_path, hooks=[hook], save_checkpoint_steps=2, save_checkpoint_secs=None
    ) as sess:
        found = [int(sess.run(seen)) for _ in range(4)]
    assert found == [1, 2, 3, 4], "the step that was lost is made again"
    assert hook.calls.count("created") == 2


def test_training_begins_where_it_ended(tmp_path):
    def train(steps):
        with tf.Graph().as_default():
            step, advance = counting()
            tf.summary.scalar("twice", step * 2)
            hooks = [tf.train.StopAtStepHook(num_steps=steps)]
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=tmp_path, hooks=hooks, save_summaries_steps=1
            ) as sess:
                while not sess.should_stop():
                    last = sess.run(advance)
        return int(last)

    assert [train(3), train(2)] == [3, 5]
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-5")
    assert (tmp_path / "graph.pbtxt").exists()
    tf.summary.FileWriterCache.clear()
    values = [
        value.simple_value
        for path in sorted(tmp_path.glob("events*"))
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "twice"
    ]
    assert len(values) == 5


def test_checkpoints_are_saved_and_listeners_told(tmp_path):
    class Listener(tf.train.CheckpointSaverListener):
        def __init__(self):
            self.calls = []

        def begin(self):
            self.calls.append("begin")

        def before_save(self, session, global_step_value):
            self.calls.append(("before", global_step_value))

        def after_save(self, session, global_step_value):
            self.calls.append(("after", global_step_value))
            return global_step_value >= 4

        def end(self, session, global_step_value):
            self.calls.append(("end", global_step_value))

    step, advance = counting()
    listener = Listener()
    saver = tf.train.Saver()
    hook = tf.train.CheckpointSaverHook(
        str(tmp_path), save_steps=2, saver=saver, listeners=[listener]
    )
    with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
        while not sess.should_stop():
            sess.run(advance)
    assert listener.calls == [
        *("begin", ("before", 0), ("after", 0), ("before", 2), ("after", 2)),
        *(("before", 4), ("after", 4), ("end", 4)),
    ]


def test_tensors_are_logged(caplog):
    step, advance = counting()
    caplog.set_level(logging.INFO, "runnel")
    hooks = [
        tf.train.LoggingTensorHook({"step": step}, every_n_iter=2),
        tf.train.LoggingTensorHook([step], at_end=True),
        tf.train.StepCounterHook(every_n_steps=2),
        tf.train.FinalOpsHook(step + 100),
    ]
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        for _ in range(5):
            sess.run(advance)
    lines = [r.message for r in caplog.records if r.message.startswith(("step =", "global_step"))]
    assert sum(line.startswith("step = ") for line in lines) == 3
    assert any(line.startswith("global_step/sec: ") for line in lines)
    assert lines[-1] == "global_step:0 = 5"
    assert hooks[-1].final_ops_values == 105


def test_a_loss_that_is_no_number_ends_training():
    x = tf.placeholder(tf.float32, [])
    loss = x * 1.0
    with (
        pytest.raises(tf.train.NanLossDuringTrainingError),
        tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss)]) as sess,
    ):
        sess.run(loss, {x: np.nan})
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        twice = x * 2
        quiet = tf.train.NanTensorHook(x, fail_on_nan_loss=False)
        with tf.train.MonitoredSession(hooks=[quiet]) as sess:
            sess.run(twice, {x: np.nan})
            assert sess.should_stop()


def test_misuse_is_told():
    for options in ({}, {"every_secs": 1, "every_steps": 1}):
        with pytest.raises(ValueError, match="every_secs"):
            tf.train.SecondOrStepTimer(**options)
    with pytest.raises(ValueError, match="num_steps or last_step"):
        tf.train.StopAtStepHook()
    with pytest.raises(RuntimeError, match="Global step should be created"):
        tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=1)])


def test_a_worker_waits_for_the_chief():
    tf.Variable(1.0)
    manager = tf.train.SessionManager(
        ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.01
    )
    with pytest.raises(
        tf.errors.DeadlineExceededError, match="Variables not initialized: Variable"
    ):
        manager.wait_for_session("", max_wait_secs=0.05)


def test_several_things_are_one_step():
    step, advance = counting()
    hook = Recording()
    with tf.train.MonitoredSession(hooks=[hook]) as sess:

        def several(context):
            context.session.run(advance)
            return context.run_with_hooks(advance)

        assert sess.run_step_fn(several) == 2
        sess.run_step_fn(lambda context: context.request_stop())
        assert sess.should_stop()
    assert hook.calls.count("before") == 1


TRAINING = """
import signal, sys
import runnel as tf
signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background of a shell

step = tf.train.get_or_create_global_step()
advance = tf.assign_add(step, 1)
with tf.train.MonitoredTrainingSession(checkpoint_dir=sys.argv[1]) as sess:
    while not sess.should_stop():
        print(sess.run(advance), flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_saves_and_leaves(tmp_path, number):
    script = tmp_path / "training.py"
    script.write_text(textwrap.dedent(TRAINING))
    folder = tmp_path / "model"
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(number)
        output, error = process.communicate(timeout=60)
    finally:
        process.kill()  # one that did not leave
        process.communicate()
    last = int(output.split()[-1]) if output.split() else 3
    assert process.returncode == (0 if number == signal.SIGTERM else -signal.SIGINT), error
    latest = tf.train.latest_checkpoint(folder)
    assert latest is not None
    saved = int(latest.rpartition("-")[2])
    assert saved >= last >= 3
