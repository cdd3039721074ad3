"""The time of day in a graph."""

from __future__ import annotations

import time

import runnel as tf


def test_the_time_is_that_of_the_run():
    now = tf.timestamp()
    with tf.control_dependencies([now]):
        later = tf.timestamp()
    with tf.Session() as sess:
        for _ in range(2):
            before = time.time()
            first, second = sess.run([now, later])
            assert before <= first <= second <= time.time()
