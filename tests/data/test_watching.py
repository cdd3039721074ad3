"""An input that cannot keep up is visible: the share of time that steps wait, the slowest stage."""

from __future__ import annotations

import logging
import threading
import time

import pytest
from click.testing import CliRunner

import runnel as tf
from runnel.pipelines.watching import INPUT_TIMES, InputInterval
from runnel.profile_script import profile

Dataset = tf.data.Dataset


def slow(n):
    threading.Event().wait(0.01)
    return n


def slowed(n):
    return tf.py_func(slow, [n], tf.int64)


@pytest.fixture
def watched():
    INPUT_TIMES.watch()
    yield
    INPUT_TIMES.leave()


@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("ahead", [0, 2])
def test_the_slowest_stage_is_named(watched, calls, ahead):
    dataset = Dataset.range(40).map(slowed, calls).filter(lambda n: n >= 0).batch(2)
    element = dataset.prefetch(ahead).make_one_shot_iterator().get_next()
    before = InputInterval()
    start = time.perf_counter()
    with tf.Session() as sess:
        for _ in range(10):
            sess.run(element)
    share, slowest = before.share(time.perf_counter() - start)
    assert share > 0.2
    assert "map" in slowest
    assert "slowed" in slowest


def test_the_progress_line_tells_of_it(tmp_path, caplog):
    number = Dataset.range(30).map(slowed).make_one_shot_iterator().get_next()
    step = tf.train.get_or_create_global_step()
    count = tf.assign_add(step, 1)
    with caplog.at_level(logging.INFO, "runnel"):
        hook = tf.train.StepCounterHook(10, output_dir=None)
        with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
            for _ in range(25):
                sess.run([number, count])
    lines = [r.getMessage() for r in caplog.records if "global_step/sec" in r.getMessage()]
    assert any("wait for input, mostly for map (slowed)" in line for line in lines), lines


def test_a_profile_tells_of_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import time\n"
        "import runnel as tf\n"
        "def late(n):\n"
        "    return tf.py_func(lambda k: time.sleep(0.01) or k, [n], tf.int64)\n"
        "with tf.Graph().as_default(), tf.Session() as sess:\n"
        "    numbers = tf.data.Dataset.range(9).map(late).batch(1)\n"
        "    element = numbers.make_one_shot_iterator().get_next()\n"
        "    for _ in range(9):\n"
        "        sess.run(element)\n"
    )
    said = CliRunner().invoke(profile, [str(script)]).output
    told = said[said.index("for input, ") :].splitlines()
    assert "of their time" in told[0]
    assert told[1].endswith("map (late)")


def test_a_step_without_datasets_tells_nothing_of_input(caplog):
    step = tf.train.get_or_create_global_step()
    count = tf.assign_add(step, 1)
    with caplog.at_level(logging.INFO, "runnel"):
        hook = tf.train.StepCounterHook(10, output_dir=None)
        with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
            for _ in range(25):
                sess.run(count)
    lines = [r.getMessage() for r in caplog.records if "global_step/sec" in r.getMessage()]
    assert lines
    assert not any("input" in line for line in lines)
