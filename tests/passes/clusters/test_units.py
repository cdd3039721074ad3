"""Cutting a step with blocking operations: what waits together, what is compiled whole."""

from __future__ import annotations

import numpy as np

import runnel as tf
from runnel.runtime.schedule.unit import BlockingUnit


def units_of(sess, fetches=(), targets=()):
    """For each unit of the step: the blocking op's name, or (compilable, the names of its ops)."""
    plan = sess._plan(list(fetches), list(targets), [])
    described = []
    for unit in plan.schedule.units:
        if isinstance(unit, BlockingUnit):
            described.append(unit.node.op.name)
        else:
            segment = unit.runner.segment
            described.append((segment.compilable, {node.op.name for node in segment.nodes}))
    return described


def test_a_training_step_behind_a_queue_is_one_segment():
    queue = tf.FIFOQueue(10, [tf.float32, tf.float32], shapes=[[3], []], name="q")
    x, y = queue.dequeue_many(4, name="batch")
    w = tf.Variable(np.zeros((3, 1), np.float32))
    loss = tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(x, w), 1) - y)) + tf.nn.l2_loss(w)
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    with tf.Session() as sess:
        units = units_of(sess, [loss], [train])
    assert units[:2] == ["q", "batch"]
    assert len(units) == 3 and units[2][0]


def test_what_two_queues_feed_waits_for_both_and_no_more():
    a, b = (tf.FIFOQueue(1, tf.float32, shapes=[[]], name=n) for n in "ab")
    x, y = a.dequeue(name="x"), b.dequeue(name="y")
    only_x, only_y = tf.exp(x, name="only_x"), tf.exp(y, name="only_y")
    both = tf.add(only_x, only_y, name="both")
    with tf.Session() as sess:
        fetched = units_of(sess, [only_x, only_y, both])
        wanted = units_of(sess, [both])
    assert [u[1] for u in fetched if isinstance(u, tuple)] == [{"only_x"}, {"only_y"}, {"both"}]
    assert [u[1] for u in wanted if isinstance(u, tuple)] == [{"only_x", "only_y", "both"}]


def test_what_is_seen_outside_does_not_wait():
    queue = tf.FIFOQueue(1, tf.float32, shapes=[[]], name="q")
    v = tf.Variable(1.0, name="v")
    count = tf.Variable(0.0, name="count")
    bump = tf.assign_add(count, 1.0, name="bump")
    result = tf.add(queue.dequeue(name="take"), v, name="result")
    with tf.Session() as sess:
        units = units_of(sess, [result], [bump.op])
    segments = [u[1] for u in units if isinstance(u, tuple)]
    assert any("bump" in s and "result" not in s for s in segments)
    assert any("result" in s and "bump" not in s for s in segments)


def test_an_update_comes_after_the_reads_before_it():
    queue = tf.FIFOQueue(1, tf.float32, shapes=[[]], name="q")
    v = tf.Variable(1.0, name="v")
    before = tf.add(v, queue.dequeue(name="take"), name="before")
    update = tf.assign(v, before * 2.0)
    after = tf.add(v, 0.0, name="after")
    put = queue.enqueue(3.0)
    with tf.Session() as sess:
        sess.run(v.initializer)
        sess.run(put)
        assert sess.run([before, update, after]) == [4.0, 8.0, 8.0]
