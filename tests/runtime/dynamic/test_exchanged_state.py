"""Loops with queues: whoever takes an element sees what was written before it was given.

Also where a queue lets the loop go on at once, so that it never sleeps.
"""

from __future__ import annotations

import numpy as np

import runnel as tf


def elements(capacity=10):
    queue = tf.FIFOQueue(capacity, tf.int64, shapes=[()])
    given = tf.placeholder_with_default(np.int64(0), [])
    return queue, queue.enqueue(given), queue.dequeue()


def test_a_loop_reads_what_was_written_before_the_element_that_it_takes():
    v = tf.get_variable("v", [], tf.int64, tf.zeros_initializer())
    queue, put, _ = elements()
    write = v.assign_add(1)
    session = tf.Session()

    def another_step(n):
        session.run(write)
        session.run(put)  # so that taking it waits for nothing
        return n

    def body(n, _):
        there = tf.py_func(another_step, [n], tf.int64)
        there.set_shape([])
        with tf.control_dependencies([there]):
            taken = queue.dequeue()
        with tf.control_dependencies([taken]):
            return n + 1, v.read_value()

    start = [tf.constant(0, tf.int64), tf.constant(0, tf.int64)]
    # It goes on while it sees each write.
    made, _ = tf.while_loop(
        lambda n, seen: tf.equal(n, seen) & (n < 5), body, start, back_prop=False
    )
    with session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(v.initializer)
            assert session.run(made) == 5


def test_others_see_what_a_loop_has_written_before_the_element_that_it_gives():
    v = tf.get_variable("v", [], tf.int64, tf.zeros_initializer())
    queue, _, take = elements()
    with tf.control_dependencies([take]):
        read = v.read_value()
    session = tf.Session()

    def another_step(n):
        return session.run(read)

    def body(n, same):
        with tf.control_dependencies([v.assign(n + 1)]):
            put = queue.enqueue(n)
        with tf.control_dependencies([put]):
            seen = tf.py_func(another_step, [n], tf.int64)
        seen.set_shape([])
        return n + 1, same & tf.equal(seen, n + 1)

    start = [tf.constant(0, tf.int64), tf.constant(True)]
    _, same = tf.while_loop(lambda n, same: n < 5, body, start, back_prop=False)
    with session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            assert session.run(same)
            assert session.run(v) == 5
