"""What touches a variable does so in the order of construction, also where something waits."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session
from tests.sleepers import await_sleepers

LEVELS = pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
WHEN = pytest.mark.parametrize("when", ["before", "late"])


def run(sess: tf.Session, fetches: Any, feeds: Any, fill: list[tf.Operation], when: str) -> Any:
    """The step's values, where its queues are filled before it or when it can only wait."""
    if when == "before":
        for operation in fill:
            sess.run(operation)
        return sess.run(fetches, feeds)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(sess.run(fetches, feeds)))
    thread.start()
    for operation in fill:
        assert await_sleepers(sess._steps, 1, 30)
        sess.run(operation)
    thread.join(60)
    return found[0]


@LEVELS
@WHEN
@pytest.mark.parametrize("resource", [False, True])
def test_a_branch_reads_what_it_has_written_when_the_update_had_to_wait(level, when, resource):
    queue = tf.FIFOQueue(1, tf.float32, [()])
    v = tf.Variable(1.0, use_resource=resource)
    p = tf.placeholder(tf.bool, [])

    def taken() -> tf.Tensor:
        with tf.control_dependencies([v.assign_add(queue.dequeue())]):
            return tf.identity(v)

    result = tf.cond(p, taken, lambda: tf.negative(v))
    with session(level) as sess:
        sess.run(v.initializer)
        fill = [queue.enqueue(2.0)]
        assert run(sess, result, {p: True}, fill, when) == 3.0
        assert run(sess, result, {p: False}, [], "before") == -3.0


@LEVELS
@WHEN
def test_a_loop_updates_and_reads_in_turn_when_each_update_has_to_wait(level, when):
    queue = tf.FIFOQueue(8, tf.float32, [()])
    v = tf.Variable(0.0, use_resource=True)

    def body(i: tf.Tensor, seen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        update = v.assign_add(queue.dequeue())
        with tf.control_dependencies([update.op]):
            return i + 1, seen * 10.0 + v

    seen = tf.while_loop(lambda i, s: i < 3, body, (tf.constant(0), tf.constant(0.0)))[1]
    after = tf.identity(v)
    with session(level) as sess:
        sess.run(v.initializer)
        fill = [queue.enqueue(float(number)) for number in (1, 2, 3)]
        for turn in range(2):
            one, two, three = (6.0 * turn + n for n in (1, 3, 6))
            found = run(sess, [seen, after], None, fill, when)
            assert found == [one * 100 + two * 10 + three, three]
