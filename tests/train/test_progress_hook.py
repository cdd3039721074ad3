"""How far training is, on a terminal and elsewhere."""

from __future__ import annotations

import io
import re

import pytest

import runnel as tf
from runnel.train import progress_hook


class Terminal(io.StringIO):
    def isatty(self):
        return True


def train(output, steps=20):
    step = tf.train.get_or_create_global_step()
    loss = tf.constant(0.25, name="loss")
    hooks = [
        tf.train.StopAtStepHook(num_steps=steps),
        tf.train.ProgressHook(loss, last_step=steps, output=output),
    ]
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(tf.get_default_graph().get_operation_by_name("advance"))
    return step


@pytest.fixture
def advance():
    step = tf.train.get_or_create_global_step()
    tf.assign_add(step, 1, name="advance")


def test_lines_say_step_rate_loss_and_time_left(advance, monkeypatch):
    monkeypatch.setattr(progress_hook, "ELSEWHERE_SECONDS", 0.0)
    output = io.StringIO()
    train(output)
    lines = output.getvalue().splitlines()
    assert lines[0] == "step 0 of 20" and len(lines) == 22
    form = r"step 7 of 20 · [\d.e+]+ steps/s · loss 0.25 · 0:00:0\d left"
    assert re.fullmatch(form, lines[7]), lines[7]
    assert lines[-1].startswith("step 20 of 20")


def test_few_lines_are_written_of_a_short_job(advance):
    output = io.StringIO()
    train(output)
    assert len(output.getvalue().splitlines()) == 2, "the first and the last"


def test_a_terminal_has_one_line_that_changes(advance, monkeypatch):
    monkeypatch.setattr(progress_hook, "ON_TERMINAL_SECONDS", 0.0)
    output = Terminal()
    train(output)
    text = output.getvalue()
    assert "step 3 of 20" in text and "step 20 of 20" in text
    assert text.count("\r\x1b[2K") == 22 and text.count("\n") == 1


def test_the_loss_is_fetched_only_when_it_is_shown(advance):
    fetched = []
    loss = tf.py_func(lambda: fetched.append(1) or 0.5, [], tf.double)
    hook = tf.train.ProgressHook(loss, output=io.StringIO())
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        for _ in range(5):
            sess.run("advance")
    assert not fetched


def test_an_estimator_shows_it_on_a_terminal(tmp_path, monkeypatch):
    def model_fn(features, labels, mode):
        loss = tf.reduce_mean(tf.get_variable("w", initializer=1.0) * features)
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    shown = {}
    for output in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", output)
        estimator = tf.estimator.Estimator(model_fn, str(tmp_path / type(output).__name__))
        estimator.train(lambda: (tf.ones([2]), tf.ones([2])), steps=3)
        shown[type(output).__name__] = "step 3 of 3" in output.getvalue()
    tf.summary.FileWriterCache.clear()
    assert shown == {"Terminal": True, "StringIO": False}


def test_a_loop_of_a_supervisor_shows_it_on_a_terminal(advance, monkeypatch):
    output = Terminal()
    monkeypatch.setattr("sys.stderr", output)
    supervisor = tf.train.Supervisor(logdir=None)

    def one(sess):
        if sess.run("advance") is None and sess.run(tf.train.get_global_step()) >= 3:
            supervisor.request_stop()

    tf.train.basic_train_loop(supervisor, one)
    assert "step 3" in output.getvalue()
