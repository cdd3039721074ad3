"""Parts of a step that their master stops while an operation of them takes very long."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf
from tests.distributed.clusters import servers

pytestmark = pytest.mark.timeout(120)
Dataset = tf.data.Dataset
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
SOON = tf.RunOptions(timeout_in_ms=300)
SECONDS = 60


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=1, worker=1) as found:
        yield found


class Slow:
    """A function of numbers that does not return for 3 until it may."""

    def __init__(self):
        self.seen = []
        self.begun, self.may_end, self.ended = (threading.Event() for _ in range(3))

    def __call__(self, number):
        if number == 3:
            self.begun.set()
            assert self.may_end.wait(SECONDS)
        self.seen.append(int(number))
        if number == 3:
            self.ended.set()
        return number


@pytest.fixture
def slow():
    made = Slow()
    yield made
    made.may_end.set()


def session(server):
    return tf.Session(server.target, config=tf.ConfigProto(isolate_session_state=True))


def mapped(slow, calls=None):
    return Dataset.range(6).map(lambda n: tf.py_func(slow, [n], tf.int64), calls)


ELEMENTS = {
    "map": lambda slow: mapped(slow),
    "parallel map": lambda slow: mapped(slow, 2),
    "prefetch": lambda slow: mapped(slow).prefetch(1),
    "map of a prefetch": lambda slow: mapped(slow).prefetch(1).map(lambda n: n),
}


@pytest.mark.parametrize("master", ["worker0", "ps0"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_the_next_step_gets_the_element_that_a_part_has_not_waited_for(cluster, name, master, slow):
    with tf.Graph().as_default():
        with tf.device(PS):
            element = ELEMENTS[name](slow).make_one_shot_iterator().get_next()
        with tf.device(WORKER):
            doubled = element * 2
        with session(cluster[master]) as sess:
            found = []
            with pytest.raises(tf.errors.DeadlineExceededError):
                while True:
                    found.append(sess.run(doubled, options=SOON))
            assert slow.begun.wait(SECONDS)
            slow.may_end.set()
            while len(found) < 6:
                found.append(sess.run(doubled))
            assert found == [0, 2, 4, 6, 8, 10] and sorted(slow.seen) == [0, 1, 2, 3, 4, 5]
            with pytest.raises(tf.errors.OutOfRangeError):
                sess.run(doubled)


@pytest.mark.parametrize("master", ["worker0", "ps0"])
def test_a_part_does_not_wait_for_a_python_function(cluster, master, slow):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        with tf.device(PS):
            v = tf.Variable(1.0)
            made = tf.py_func(slow, [x], tf.float32)
            update = v.assign_add(tf.reshape(made, [])).op
        with tf.device(WORKER):
            doubled = v.read_value() * 2
        with session(cluster[master]) as sess:
            sess.run(v.initializer)
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(update, {x: 3.0}, options=SOON)
            assert slow.begun.wait(SECONDS)
            assert not slow.ended.is_set()
            assert sess.run(doubled) == 2.0  # the task goes on
            slow.may_end.set()
            assert slow.ended.wait(SECONDS)
            assert sess.run(doubled) == 2.0
            sess.run(update, {x: 4.0}, options=tf.RunOptions(timeout_in_ms=1000 * SECONDS))
            assert sess.run(doubled) == 10.0


def test_a_failure_elsewhere_stops_a_part_inside_a_function(cluster, slow):
    """The step need not have a deadline: its master aborts the other parts."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        with tf.device(PS):
            made = tf.py_func(slow, [x], tf.float32)
        with tf.device(WORKER):

            def fail(value):
                assert slow.begun.wait(SECONDS)
                raise ValueError("elsewhere")

            bad = tf.py_func(fail, [x], tf.float32)
        with session(cluster["worker0"]) as sess:
            with pytest.raises(tf.errors.InvalidArgumentError, match="elsewhere"):
                sess.run([made, bad], {x: 3.0})
            assert not slow.ended.is_set()
            slow.may_end.set()
            assert sess.run(made, {x: np.float32(5.0)}) == 5.0
