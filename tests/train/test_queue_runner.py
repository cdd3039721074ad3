"""Threads that fill queues, and what is built on them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf


def drained(sess, fetch):
    """What ``fetch`` gives until the input ends, with the graph's runners at work."""
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    found = []
    try:
        while not coord.should_stop():
            found.append(sess.run(fetch))
    except tf.errors.OutOfRangeError:
        pass
    finally:
        coord.request_stop()
    coord.join(threads)
    return found


def test_a_runner_fills_the_queue_until_it_is_stopped():
    queue = tf.FIFOQueue(5, tf.int32, shapes=[[]])
    count = tf.Variable(0)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(count.assign_add(1))] * 2)
    tf.train.add_queue_runner(runner)
    assert tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS) == [runner]
    take = queue.dequeue()
    with tf.Session() as sess:
        sess.run(count.initializer)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        assert len(threads) == 3
        assert runner.create_threads(sess, coord) == [], "it is at work in this session"
        assert sorted(sess.run(take) for _ in range(50))[:10] == list(range(1, 11))
        coord.request_stop()
        coord.join(threads)
        assert sess.run(queue.is_closed())


def test_the_last_thread_to_end_closes_the_queue():
    queue = tf.FIFOQueue(100, tf.int64, shapes=[[]])
    fed = tf.train.limit_epochs(tf.constant([1, 2, 3], tf.int64), 4)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue_many([fed])] * 2))
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        assert sorted(drained(sess, queue.dequeue())) == [1] * 4 + [2] * 4 + [3] * 4


def test_a_failure_reaches_the_main_thread_with_its_line():
    queue = tf.FIFOQueue(5, tf.float32, shapes=[[]])
    x = tf.placeholder_with_default(-1.0, [])
    broken = tf.Assert(x > 0, [x], name="must_be_positive")
    with tf.control_dependencies([broken]):
        put = queue.enqueue(x)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [put]))
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            drained(sess, queue.dequeue())
        assert caught.value.op is broken
        assert "test_queue_runner.py" in str(caught.value)


def test_without_a_coordinator_the_runner_keeps_the_exception(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    queue = tf.FIFOQueue(5, tf.float32, shapes=[[]])
    x = tf.placeholder(tf.float32, [])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(x)])
    with tf.Session() as sess:
        for thread in runner.create_threads(sess, start=True):
            thread.join(30)
    assert [type(error) for error in runner.exceptions_raised] == [tf.errors.InvalidArgumentError]


def test_mistakes():
    queue = tf.FIFOQueue(5, tf.float32)
    with pytest.raises(ValueError, match="needs a queue"):
        tf.train.QueueRunner(queue, [])
    with pytest.raises(TypeError, match="tuple of exception types"):
        tf.train.QueueRunner(queue, [queue.close()], queue_closed_exception_types=ValueError)
    with pytest.raises(ValueError, match="No default session"):
        tf.train.start_queue_runners()
    with pytest.raises(TypeError, match="tf.Session"):
        tf.train.start_queue_runners("session")


# Producers and batches ------------------------------------------------------------------------


def in_epochs(fetch):
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        return drained(sess, fetch)


@pytest.mark.parametrize("shuffle", [False, True])
def test_producers_go_through_their_data_epoch_by_epoch(shuffle):
    names = tf.train.string_input_producer(["a", "b", "c"], 2, shuffle=shuffle, seed=4).dequeue()
    found = in_epochs(names)
    assert sorted(found) == [b"a", b"a", b"b", b"b", b"c", b"c"]
    assert sorted(found[:3]) == [b"a", b"b", b"c"], "an epoch is over before the next begins"
    if not shuffle:
        assert found[:3] == [b"a", b"b", b"c"]


def test_slices_stay_together():
    x, y = np.arange(8.0).reshape(4, 2), np.arange(4)
    pair = tf.train.slice_input_producer([x, y], num_epochs=3, seed=1)
    found = in_epochs(pair)
    assert len(found) == 12
    for row, number in found:
        np.testing.assert_array_equal(row, x[number])


def test_ranges_and_mistakes():
    assert in_epochs(tf.train.range_input_producer(3, 1, shuffle=False).dequeue()) == [0, 1, 2]
    with pytest.raises(ValueError, match="non-null"):
        tf.train.string_input_producer([])
    with pytest.raises(ValueError, match="num_epochs must be > 0"):
        tf.train.limit_epochs(tf.constant(1), 0)
    with pytest.raises(ValueError, match="known shape"):
        tf.train.input_producer(tf.placeholder(tf.float32))


def numbers(limit=7):
    return tf.train.range_input_producer(limit, 1, shuffle=False).dequeue()


def test_batches_in_order_and_the_smaller_last_one():
    n = numbers()
    batch = tf.train.batch({"n": n, "square": n * n}, 3, allow_smaller_final_batch=True)
    assert batch["n"].shape.as_list() == [None]
    found = in_epochs(batch)
    assert [b["n"].tolist() for b in found] == [[0, 1, 2], [3, 4, 5], [6]]
    assert found[1]["square"].tolist() == [9, 16, 25]


def test_a_batch_that_is_not_full_is_dropped():
    batch = tf.train.batch(numbers(), 3)
    assert batch.shape.as_list() == [3]
    assert [b.tolist() for b in in_epochs(batch)] == [[0, 1, 2], [3, 4, 5]]


def test_padded_batches():
    n = numbers(3)
    batch = tf.train.batch([tf.fill([n], n)], 3, dynamic_pad=True, shapes=[[None]])
    assert in_epochs(batch)[0].tolist() == [[0, 0], [1, 0], [2, 2]]


def test_many_at_once_and_joined_sources():
    n = numbers(4)
    batch = tf.train.batch([tf.stack([n, n + 10])], 4, enqueue_many=True)
    assert [b.tolist() for b in in_epochs(batch)] == [[0, 10, 1, 11], [2, 12, 3, 13]]


def test_joined_sources():
    n = numbers(6)
    batch = tf.train.batch_join([[n], [n + 100]], 6)
    assert batch.shape.as_list() == [6]
    assert sorted(v % 100 for v in in_epochs(batch)[0]) == list(range(6))


@pytest.mark.parametrize("joined", [False, True])
def test_shuffled_batches(joined):
    n = numbers(20)
    if joined:
        batch = tf.train.shuffle_batch_join([[n]], 5, 20, 10, seed=3)
    else:
        batch = tf.train.shuffle_batch([n], 5, 20, 10, num_threads=2, seed=3)
    found = np.concatenate(in_epochs(batch)).tolist()
    assert sorted(found) == list(range(20)) != found


def test_only_what_is_kept_is_batched():
    n = numbers(8)
    batch = tf.train.maybe_batch(n, tf.equal(n % 2, 1), 2)
    assert [b.tolist() for b in in_epochs(batch)] == [[1, 3], [5, 7]]


def test_only_the_rows_that_are_kept_are_batched():
    n = numbers(3)
    rows = tf.stack([n, n + 10, n + 20])
    batch = tf.train.maybe_batch([rows], [True, False, True], 6, enqueue_many=True)
    assert in_epochs(batch)[0].tolist() == [0, 20, 1, 21, 2, 22]
    with pytest.raises(ValueError, match="cannot be a vector"):
        tf.train.maybe_batch([n], [True, False], 2)
