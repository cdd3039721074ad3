"""Ctrl-C and SIGTERM: every kind of training job saves and leaves, also one without input."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import runnel as tf


@pytest.fixture(autouse=True)
def writers_are_closed():
    yield
    tf.summary.FileWriterCache.clear()


BEGIN = """
import os, signal, sys, threading
import runnel as tf

def say(text):
    os.write(1, f"{text}\\n".encode())  # threads do not mix their lines

signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background of a shell
folder = sys.argv[1]
step = tf.train.get_or_create_global_step()
"""

ENDLESS = "given = tf.constant(1, tf.int64)\n"

QUEUE = """
from tests.sleepers import await_sleepers
queue = tf.FIFOQueue(10, tf.int64, [[]])
fill = queue.enqueue_many([[1, 1, 1]])
given = queue.dequeue()

def fill_and_watch(sess):
    sess.run(fill)
    def watch():
        await_sleepers(sess._steps, 1, 60)
        say("waiting")
    threading.Thread(target=watch, daemon=True).start()
"""

DATASET = """
def elements():
    yield from (1, 1, 1)
    say("waiting")
    threading.Event().wait()

data = tf.data.Dataset.from_generator(elements, tf.int64, []).prefetch(1)
given = tf.data.make_one_shot_iterator(data).get_next()
"""

LOOPS = {
    "MonitoredTrainingSession": """
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder) as sess:
            while not sess.should_stop():
                say(sess.run(advance))
    """,
    "MonitoredSession": """
        saves = tf.train.CheckpointSaverHook(folder, save_secs=600)
        with tf.train.MonitoredSession(hooks=[saves]) as sess:
            while not sess.should_stop():
                say(sess.run(advance))
    """,
    "a loop that never asks": """
        saves = tf.train.CheckpointSaverHook(folder, save_secs=600)
        with tf.train.SingularMonitoredSession(hooks=[saves]) as sess:
            while True:
                say(sess.run(advance))
    """,
    "Supervisor": """
        sv = tf.train.Supervisor(logdir=folder)
        with sv.managed_session() as sess:
            while not sv.should_stop():
                say(sess.run(advance))
    """,
    "slim": """
        def train_step(sess, train_op, *_):
            say(sess.run(train_op))
            return 0.0, False
        tf.contrib.slim.learning.train(advance, folder, train_step_fn=train_step)
    """,
    "Estimator": """
        def model_fn(features, labels, mode):
            step = tf.train.get_global_step()
            advance = tf.assign_add(step, 1)
            said = tf.py_func(lambda x: say(x), [advance], [], stateful=True)
            loss = tf.reduce_mean(features)
            if mode == "eval":
                say("evaluates")
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(said, advance))
        def input_fn():
            return tf.data.Dataset.from_tensors([1.0]).repeat()
        tf.estimator.train_and_evaluate(
            tf.estimator.Estimator(model_fn, folder),
            tf.estimator.TrainSpec(input_fn),
            tf.estimator.EvalSpec(input_fn),
        )
    """,
}
SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])


def told(tmp_path, program, number, sign):
    """What a program printed that gets a signal once it has printed ``sign``; its exit status."""
    script = tmp_path / "training.py"
    script.write_text(program)
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "model")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    seen = []
    try:
        for line in process.stdout:
            seen.append(line.strip())
            if sign in seen:
                break
        process.send_signal(number)
        output, error = process.communicate(timeout=60)
    finally:
        process.kill()  # one that did not leave
        process.communicate()
    return [*seen, *output.split()], process.returncode, error


def saved_step(tmp_path, folder="model"):
    latest = tf.train.latest_checkpoint(tmp_path / folder)
    assert latest is not None
    value = int(tf.train.load_variable(latest, "global_step"))
    assert latest.endswith(f"-{value}")
    return value


@SIGNALS
@pytest.mark.parametrize("kind", LOOPS)
def test_a_job_that_computes_saves_and_leaves(tmp_path, kind, number):
    program = BEGIN + ENDLESS + "advance = tf.assign_add(step, given)\n"
    output, status, error = told(tmp_path, program + textwrap.dedent(LOOPS[kind]), number, "3")
    assert status == (0 if number == signal.SIGTERM else -signal.SIGINT), error
    assert "evaluates" not in output
    last = max(int(text) for text in output if text.isdecimal())
    assert saved_step(tmp_path) >= last >= 3


@pytest.mark.parametrize("source", [QUEUE, DATASET], ids=["queue", "dataset"])
@pytest.mark.parametrize("kind", ["MonitoredTrainingSession", "MonitoredSession", "Supervisor"])
def test_sigterm_wakes_a_job_that_waits_for_input(tmp_path, kind, source):
    loop = textwrap.dedent(LOOPS[kind])
    if source is QUEUE:
        raw = "sess" if kind == "Supervisor" else "sess.raw_session()"
        loop = loop.replace("    while", f"    fill_and_watch({raw})\n    while", 1)
    program = BEGIN + source + "advance = tf.assign_add(step, given)\n" + loop
    _, status, error = told(tmp_path, program, signal.SIGTERM, "waiting")
    assert status == 0, error
    assert saved_step(tmp_path) == 3


class Lost(tf.train.SessionRunHook):
    """Every step finds that a task is gone."""

    def before_run(self, run_context):
        raise tf.errors.AbortedError(None, None, "the task is gone")


def loses_its_session(folder, again):
    """A job that saves, and whose first session is lost; ``again()`` is asked for the next."""
    step = tf.train.get_or_create_global_step()
    makers = iter([tf.train.ChiefSessionCreator().create_session, again])
    creator = tf.train.SessionCreator()
    creator.create_session = lambda: next(makers)()
    saves = tf.train.CheckpointSaverHook(str(folder), save_secs=600, saver=tf.train.Saver())
    with tf.train.MonitoredSession(creator, [saves, Lost()]) as sess:
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        while not sess.should_stop():
            sess.run(step)


def test_a_job_that_waits_for_another_session_leaves_at_once(tmp_path):
    def told():
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail(f"it waits on: {threading.Event().wait(60)}")

    loses_its_session(tmp_path, again=told)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_sigterm_ends_a_program_again_that_got_no_other_session(tmp_path):
    def fails():
        raise ValueError("there is no such task")

    with pytest.raises(ValueError, match="no such task"):
        loses_its_session(tmp_path, again=fails)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.timeout(120)
def test_sigterm_may_come_while_the_coordinator_is_busy(tmp_path):
    tf.train.get_or_create_global_step()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path))
    with supervisor.managed_session():
        with supervisor.coord._lock, supervisor.coord._stop._cond:
            os.kill(os.getpid(), signal.SIGTERM)
        assert supervisor.coord.wait_for_stop(60)
    assert saved_step(tmp_path, "") == 0


def test_what_saves_nothing_is_cut_off(tmp_path):
    loop = """
        with tf.train.MonitoredSession() as sess:
            while not sess.should_stop():
                say(sess.run(advance))
    """
    program = BEGIN + ENDLESS + "advance = tf.assign_add(step, given)\n" + textwrap.dedent(loop)
    _, status, error = told(tmp_path, program, signal.SIGTERM, "3")
    assert status == -signal.SIGTERM, error


def test_a_handler_of_the_program_stays(tmp_path):
    script = """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        saves = tf.train.CheckpointSaverHook(folder, save_secs=600)
        with tf.train.MonitoredSession(hooks=[saves]) as sess:
            while not sess.should_stop():
                say(sess.run(advance))
    """
    program = BEGIN + ENDLESS + "advance = tf.assign_add(step, given)\n" + textwrap.dedent(script)
    _, status, error = told(tmp_path, program, signal.SIGTERM, "3")
    assert status == 7, error
    assert saved_step(tmp_path) >= 3
