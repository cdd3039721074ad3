"""How far training is, on a terminal and elsewhere."""

from __future__ import annotations

import io
import logging
import re

import numpy as np
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


class Elsewhere(io.StringIO):
    pass


KINDS = pytest.mark.parametrize("kind", [Terminal, Elsewhere])


def standard_error(kind, monkeypatch):
    """What takes its place; a line of each step is written to it."""
    monkeypatch.setattr(progress_hook, "ON_TERMINAL_SECONDS", 0.0)
    monkeypatch.setattr(progress_hook, "ELSEWHERE_SECONDS", 0.0)
    output = kind()
    monkeypatch.setattr("sys.stderr", output)
    return output


def lines_of(output):
    """The lines that were to be seen one after the other."""
    return [line for line in re.split(r"[\r\n]|\x1b\[2K", output.getvalue()) if line]


def estimator(folder):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", initializer=1.0)
        loss = tf.reduce_mean(tf.square(w * features - 2.0))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(
            mode, predictions=w * features, loss=loss, train_op=train_op
        )

    return tf.estimator.Estimator(model_fn, str(folder))


def batches():
    return tf.data.Dataset.from_tensors((tf.ones([2]), tf.ones([2]))).repeat(5)


@KINDS
def test_an_estimator_shows_training_evaluation_and_prediction(tmp_path, kind, monkeypatch):
    shown = standard_error(kind, monkeypatch)
    made = estimator(tmp_path)
    made.train(batches, steps=3)
    trained = lines_of(shown)
    assert trained[0] == "step 0 of 3" and trained[-1].startswith("step 3 of 3")
    assert any("loss" in line and "left" in line for line in trained)
    shown.truncate(0)
    made.evaluate(batches, steps=4)
    evaluated = lines_of(shown)
    assert any(line.startswith("evaluation step 4 of 4 · ") for line in evaluated)
    shown.truncate(0)
    assert len(list(made.predict(lambda: batches().map(lambda x, _: x)))) == 10
    assert any(line.startswith("prediction step 4 · ") for line in lines_of(shown))
    tf.summary.FileWriterCache.clear()


def test_what_a_program_prints_of_predictions_is_not_on_the_line_of_progress(tmp_path, monkeypatch):
    output = standard_error(Terminal, monkeypatch)
    made = estimator(tmp_path)
    made.train(batches, steps=1)
    for _ in made.predict(lambda: batches().map(lambda x, _: x)):
        assert output.getvalue().endswith("\r\x1b[2K")
    tf.summary.FileWriterCache.clear()


@KINDS
def test_a_loop_of_a_supervisor_shows_it_with_its_loss(advance, kind, monkeypatch):
    shown = standard_error(kind, monkeypatch)
    supervisor = tf.train.Supervisor(logdir=None)

    def one(sess):
        sess.run("advance")
        if sess.run(tf.train.get_global_step()) >= 3:
            supervisor.request_stop()
        return np.float32(0.5)

    tf.train.basic_train_loop(supervisor, one)
    lines = lines_of(shown)
    assert any(re.match(r"step 2 · .* · loss 0.5", line) for line in lines)
    assert lines[-1].startswith("step 3")


@KINDS
def test_a_loop_of_slim_shows_it(tmp_path, kind, monkeypatch):
    shown = standard_error(kind, monkeypatch)
    from runnel.contrib import slim

    loss = tf.square(tf.get_variable("w", initializer=1.0))
    train_op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    slim.learning.train(train_op, str(tmp_path), number_of_steps=3, log_every_n_steps=0)
    lines = lines_of(shown)
    assert any(re.match(r"step 2 of 3 · .* · loss 0\.\d+ · ", line) for line in lines)
    assert lines[-1].startswith("step 3 of 3") and len(lines) == 3
    tf.summary.FileWriterCache.clear()


@pytest.mark.parametrize("level", [None, tf.logging.ERROR])
def test_what_nobody_asked_for_is_silent_of_short_jobs_and_where_logs_are(
    tmp_path, monkeypatch, level
):
    output = Elsewhere()
    monkeypatch.setattr("sys.stderr", output)
    if level is not None:
        monkeypatch.setattr(progress_hook, "ELSEWHERE_SECONDS", 0.0)
        monkeypatch.setattr(logging.getLogger("runnel"), "level", level)
        monkeypatch.setattr(logging.getLogger("runnel"), "_cache", {})
    made = estimator(tmp_path)
    made.train(batches, steps=2)
    made.evaluate(batches)
    tf.summary.FileWriterCache.clear()
    assert not output.getvalue()
