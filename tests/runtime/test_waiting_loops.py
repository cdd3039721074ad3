"""Loops with blocking operations: the same results wherever an iteration has to wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.dynamic import dataflow_step
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.runtime.test_waiting import Running, asleep

TIMES = 6
FIRST = np.float32([0.5, -1.0, 2.0, 0.25, -0.5, 1.5])
SECOND = np.float32([1.0, 0.3, -0.7, 0.9, 0.1, -2.0])


class Queues:
    """Two queues, and a loop that takes from both, in a branch and beside an inner loop."""

    def __init__(self) -> None:
        self.one = tf.FIFOQueue(10, [tf.float32], [[]])
        self.two = tf.FIFOQueue(10, [tf.float32], [[]])
        self.element = tf.placeholder(tf.float32, [])
        self.puts = [queue.enqueue(self.element) for queue in (self.one, self.two)]
        self.noted: list[tuple[int, float]] = []
        self.variable = tf.Variable(np.float32(0.0), use_resource=True)
        self.result = tf.while_loop(
            lambda i, *_: i < TIMES,
            self._body,
            (tf.constant(0), tf.constant(0.25), tf.constant([1.0, 2.0])),
            parallel_iterations=3,
        )[1:]

    def _note(self, i: Any, value: Any) -> Any:
        self.noted.append((int(i), round(float(value), 4)))
        return value

    def _body(self, i: Any, x: Any, row: Any) -> Any:
        before = tf.while_loop(lambda j, _: j < i, lambda j, y: (j + 1, y * 0.5 + 1.0), (0, x))[1]
        taken = self.one.dequeue() + tf.cast(i, tf.float32)
        odd = tf.cond(
            tf.equal(i % 2, 1),
            lambda: tf.tanh(self.two.dequeue()) + before,
            lambda: before * 2.0,
        )
        noted = tf.py_func(self._note, [i, odd], tf.float32)
        noted.set_shape([])
        with tf.control_dependencies([self.variable.assign_add(noted)]):
            after = tf.while_loop(
                lambda j, _: j < 3, lambda j, y: (j + 1, tf.sin(y) + taken), (0, noted)
            )[1]
            total = self.variable.read_value()
        return i + 1, tf.tanh(after + total), row * 0.5 + taken


def expected() -> tuple[float, np.ndarray, float, list[tuple[int, float]]]:
    x, row, variable, second = 0.25, np.array([1.0, 2.0]), 0.0, iter(SECOND)
    noted = []
    for i in range(TIMES):
        before = x
        for _ in range(i):
            before = before * 0.5 + 1
        taken = FIRST[i] + i
        odd = np.tanh(next(second)) + before if i % 2 else before * 2
        noted.append((i, round(float(odd), 4)))
        variable += odd
        after = odd
        for _ in range(3):
            after = np.sin(after) + taken
        x = np.tanh(after + variable)
        row = row * 0.5 + taken
    return float(x), row, float(variable), noted


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
@pytest.mark.parametrize(("ones", "twos"), [(6, 3), (0, 0), (1, 0), (2, 0), (3, 1), (6, 2), (5, 3)])
def test_a_loop_that_waits_gives_what_it_gives_without(level, ones, twos, monkeypatch):
    """It waits when ``ones`` and ``twos`` elements have been taken, and then for each."""
    interrupted = []
    original = dataflow_step.resume
    monkeypatch.setattr(
        dataflow_step, "resume", lambda *args: (interrupted.append(args), original(*args))[1]
    )
    with tf.Graph().as_default():
        queues = Queues()
        with session(level) as sess:
            sess.run(queues.variable.initializer)
            rest: list[tuple[Any, float]] = []
            for put, elements, there in zip(
                queues.puts, (FIRST, SECOND[:3]), (ones, twos), strict=True
            ):
                for position, element in enumerate(elements):
                    if position < there:
                        sess.run(put, {queues.element: element})
                    else:
                        rest.append((put, element))
            step = Running(lambda: sess.run(queues.result))
            if rest:
                asleep(sess)
            for put, element in rest:
                sess.run(put, {queues.element: element})
            found = step.result()
            left = sess.run(queues.variable)
    x, row, variable, noted = expected()
    assert len(interrupted) == (1 if rest else 0)
    assert queues.noted == [(i, pytest.approx(value, abs=1e-3)) for i, value in noted]
    np.testing.assert_allclose(found[0], x, rtol=1e-4)
    np.testing.assert_allclose(found[1], row, rtol=1e-4)
    np.testing.assert_allclose(left, variable, rtol=1e-4)


def test_what_waits_in_a_loop_is_withdrawn_when_the_step_fails():
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(10, [tf.float32], [[]])
        total = tf.while_loop(
            lambda i, _: i < 3,
            lambda i, x: (i + 1, x + queue.dequeue()),
            (tf.constant(0), tf.constant(0.0)),
        )[1]
        put, size = queue.enqueue(1.0), queue.size()
        with session(INTERPRETED) as sess:
            sess.run(put)
            with pytest.raises(tf.errors.DeadlineExceededError, match="dequeue|Dequeue"):
                sess.run(total, options=tf.RunOptions(timeout_in_ms=50))
            for _ in range(3):
                sess.run(put)
            assert sess.run(size) == 3
            assert sess.run(total) == 3.0
