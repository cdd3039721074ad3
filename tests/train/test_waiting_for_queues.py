"""Steps that wait for queues and readers count as waiting for input, and say for which."""

from __future__ import annotations

import io
import logging
import threading

import pytest
from click.testing import CliRunner

import runnel as tf
from runnel.pipelines.watching import INPUT_TIMES, InputInterval
from runnel.profile_script import profile
from runnel.train import progress_hook
from tests.sleepers import await_sleepers


def slow_batches():
    """Batches of numbers, each of which takes ten milliseconds to make."""
    number = tf.train.range_input_producer(100, shuffle=False, name="numbers").dequeue()
    late = tf.py_func(lambda n: threading.Event().wait(0.01) or n, [number], tf.int32)
    late.set_shape([])
    return tf.train.batch([late], 2, capacity=2, name="batches")


def advanced(batch):
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies([batch]):
        return tf.assign_add(step, 1)


def test_a_step_that_waits_for_a_queue_names_it(caplog):
    train = advanced(slow_batches())
    with caplog.at_level(logging.INFO, "runnel"):
        hook = tf.train.StepCounterHook(5, output_dir=None)
        with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
            for _ in range(12):
                sess.run(train)
    lines = [r.getMessage() for r in caplog.records if "global_step/sec" in r.getMessage()]
    assert any("wait for input, mostly for queue batches/fifo_queue" in line for line in lines)


def test_the_line_of_progress_names_it(monkeypatch):
    monkeypatch.setattr(progress_hook, "ELSEWHERE_SECONDS", 0.0)
    train, output = advanced(slow_batches()), io.StringIO()
    hook = tf.train.ProgressHook(output=output)
    with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
        for _ in range(5):
            sess.run(train)
    assert "wait for input, mostly for queue batches/fifo_queue" in output.getvalue()


def test_threads_that_fill_a_queue_do_not_count():
    """The thread that makes batches waits for numbers all the time: no step waits for that."""
    numbers = tf.FIFOQueue(10, tf.int32, [], name="numbers")
    batches = tf.FIFOQueue(10, tf.int32, [], name="batches")
    tf.train.add_queue_runner(tf.train.QueueRunner(batches, [batches.enqueue(numbers.dequeue())]))
    put, taken = numbers.enqueue(7), batches.dequeue()
    before = InputInterval()
    with tf.Session() as sess:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        assert await_sleepers(sess._steps, 1, 10), "the runner waits"
        sess.run(put)
        assert sess.run(taken) == 7
        coord.request_stop()
        sess.run(numbers.close(cancel_pending_enqueues=True))
        coord.join(threads)
    assert not any(name == "queue numbers" for name, _ in before.seen()[1])


def test_a_step_that_waits_for_a_reader_names_it(tmp_path):
    path = tmp_path / "lines"
    path.write_text("one\n")
    names = tf.FIFOQueue(1, tf.string, [], name="names")
    _, line = tf.TextLineReader(name="lines").read(names)
    put = names.enqueue([str(path)])
    late = threading.Timer(0.05, lambda: sess.run(put))
    before = InputInterval()
    with tf.Session() as sess:
        late.start()
        assert sess.run(line) == b"one"
        late.join()
    waited, stages = before.seen()
    assert waited > 0
    assert [name for name, _ in stages] == ["reader lines"]


def test_a_profile_tells_of_queues(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import time\n"
        "import runnel as tf\n"
        "with tf.Graph().as_default(), tf.Session() as sess:\n"
        "    number = tf.py_func(lambda: time.sleep(0.01) or 1.0, [], tf.double)\n"
        "    number.set_shape([])\n"
        "    batch = tf.train.batch([number], 1, capacity=1, name='late')\n"
        "    coord = tf.train.Coordinator()\n"
        "    threads = tf.train.start_queue_runners(sess, coord)\n"
        "    for _ in range(20):\n"
        "        sess.run(batch)\n"
        "    coord.request_stop()\n"
        "    coord.join(threads)\n"
    )
    said = CliRunner().invoke(profile, [str(script)]).output
    told = said[said.index("for input, ") :].splitlines()
    share = int(told[0].split("%")[0].split()[-1])
    assert share > 50, "of the steps that train, not of those that fill the queue"
    assert told[1].endswith("queue late/fifo_queue")


def test_a_thread_is_a_filler_only_inside():
    with INPUT_TIMES.filling():
        assert INPUT_TIMES.is_filling
        other: list[bool] = []
        thread = threading.Thread(target=lambda: other.append(INPUT_TIMES.is_filling))
        thread.start()
        thread.join()
        assert other == [False]
    assert not INPUT_TIMES.is_filling
    with pytest.raises(ValueError), INPUT_TIMES.filling():
        raise ValueError
    assert not INPUT_TIMES.is_filling
