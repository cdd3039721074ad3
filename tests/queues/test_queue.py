"""A queue's own promises, one by one."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.queues.elements import InOrder, Prioritized, Shuffled
from runnel.queues.queue import Queue
from tests.queues.told import start


def fifo(capacity=10, types=(tf.int64,), shapes=((),), **how):
    return Queue("FIFOQueue", "q", capacity, types, shapes, InOrder(), **how)


def done(told):
    kind, outputs = told.result()
    assert kind == "done", outputs
    return outputs


def test_a_batch_that_goes_in_whole_comes_out_whole_and_is_not_copied():
    queue = fifo(shapes=((3,),))
    rows = np.arange(12).reshape(4, 3).copy()
    start(queue.enqueue_many, [rows])
    waiter = start(queue.dequeue_many, 4)
    assert waiter.outcome[1]()[0] is rows


def test_what_was_fed_is_copied_and_what_was_computed_is_frozen():
    queue = fifo(shapes=((3,),))
    mine = np.arange(3)
    start(queue.enqueue, [mine.view()])
    mine[:] = 7
    assert done(start(queue.dequeue)) == ([0, 1, 2],)
    computed = np.arange(3) + 1
    start(queue.enqueue, [computed])
    assert not computed.flags.writeable


def test_a_large_operation_is_not_overtaken_by_small_ones():
    queue = fifo(capacity=2)
    many = start(queue.dequeue_many, 5)
    one = start(queue.dequeue)
    start(queue.enqueue_many, [np.arange(2)])
    start(queue.enqueue_many, [np.arange(2, 4)])
    assert many.result() is None and one.result() is None
    start(queue.enqueue_many, [np.arange(4, 6)])
    assert done(many) == ([0, 1, 2, 3, 4],)
    assert done(one) == (5,)


def test_what_a_cancelled_operation_has_taken_goes_back_in_its_place():
    queue = fifo(capacity=2)
    many = start(queue.dequeue_many, 3)
    start(queue.enqueue_many, [np.arange(2)])
    assert queue.size() == 0
    assert queue.cancel(many)
    start(queue.enqueue, [np.int64(9)])
    assert [done(start(queue.dequeue))[0] for _ in range(3)] == [0, 1, 9]


def test_cancelling_the_first_lets_the_next_go_on():
    queue = fifo()
    many = start(queue.dequeue_many, 3)
    one = start(queue.dequeue)
    start(queue.enqueue, [np.int64(4)])
    assert one.result() is None
    queue.cancel(many)
    assert done(one) == (4,)


def test_closing_waits_for_those_who_came_before():
    queue = fifo(capacity=1)
    start(queue.enqueue, [np.int64(1)])
    second = start(queue.enqueue, [np.int64(2)])
    close = start(queue.close, False)
    late = start(queue.enqueue, [np.int64(3)])
    assert close.result() is None and not queue.is_closed
    assert done(start(queue.dequeue)) == (1,)
    assert done(second) == () and done(close) == () and queue.is_closed
    assert late.result() == ("failed", tf.errors.CancelledError)
    assert done(start(queue.dequeue)) == (2,)
    assert start(queue.dequeue).result() == ("failed", tf.errors.OutOfRangeError)


def test_closing_at_once_fails_those_who_wait_to_put_in():
    queue = fifo(capacity=1)
    start(queue.enqueue, [np.int64(1)])
    second = start(queue.enqueue, [np.int64(2)])
    assert done(start(queue.close, True)) == ()
    assert second.result() == ("failed", tf.errors.CancelledError)
    assert done(start(queue.dequeue)) == (1,)


def test_abandoning_fails_everyone():
    queue = fifo(capacity=1)
    takers = [start(queue.dequeue) for _ in range(3)]
    queue.abandon(tf.errors.CancelledError(None, None, "gone"))
    assert {told.result() for told in takers} == {("failed", tf.errors.CancelledError)}


def test_who_comes_to_an_abandoned_queue_is_told_so_and_not_that_the_elements_have_ended():
    queue = fifo(capacity=2)
    start(queue.enqueue, [np.int64(1)])
    queue.abandon(tf.errors.CancelledError(None, None, "gone"))
    comers = [start(queue.dequeue), start(queue.dequeue_many, 1), start(queue.close, False)]
    comers.append(start(queue.enqueue, [np.int64(2)]))
    assert {told.result() for told in comers} == {("failed", tf.errors.CancelledError)}


def test_rows_of_different_sizes_are_padded():
    queue = fifo(types=(tf.int64, tf.string), shapes=((None, 2), (None,)), pads=True)
    for rows in (1, 3, 2):
        start(queue.enqueue, [np.full((rows, 2), rows), np.array([b"x"] * rows, object)])
    numbers, strings = start(queue.dequeue_many, 3).outcome[1]()
    assert numbers.shape == (3, 3, 2) and strings.shape == (3, 3)
    np.testing.assert_array_equal((numbers != 0).sum(axis=(1, 2)), [2, 6, 4])
    assert strings.tolist() == [[b"x", b"", b""], [b"x"] * 3, [b"x", b"x", b""]]


def test_priorities_come_first_and_equals_in_order():
    queue = Queue("PriorityQueue", "q", 10, [tf.int64, tf.string], [(), ()], Prioritized())
    start(queue.enqueue_many, [np.array([3, 1, 3, 2]), np.array([b"a", b"b", b"c", b"d"], object)])
    start(queue.enqueue, [np.int64(1), b"e"])
    assert done(start(queue.dequeue_many, 5)) == ([1, 1, 2, 3, 3], [b"b", b"e", b"d", b"a", b"c"])


def test_a_shuffle_queue_keeps_its_minimum_until_it_is_closed():
    rng = np.random.default_rng(0)
    elements = Shuffled(lambda: int(rng.integers(1 << 32)))
    queue = Queue("RandomShuffleQueue", "q", 100, [tf.int64], [()], elements, minimum=90)
    start(queue.enqueue_many, [np.arange(100)])
    first = done(start(queue.dequeue_many, 10))[0]
    more = start(queue.dequeue)
    assert more.result() is None
    start(queue.close, False)
    rest = done(start(queue.dequeue_many, 89))[0] + list(done(more))
    assert sorted(first + rest) == list(range(100))
    assert first + rest != list(range(100))


@pytest.mark.parametrize(
    "operation, arguments, said",
    [
        ("enqueue", [[np.zeros(2, np.int64)]], "Shape mismatch in tuple component 0"),
        ("enqueue", [[np.int64(1), np.int64(2)]], "Wrong number of components"),
        ("enqueue_many", [[np.zeros((2, 2), np.int64)]], "Shape mismatch in tuple component 0"),
        ("enqueue_many", [[np.int64(2)]], "must have rows"),
        ("dequeue_many", [-1], "requested -1 < 0 elements"),
    ],
)
def test_mistakes(operation, arguments, said):
    queue = fifo()
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        getattr(queue, operation)(*arguments, waiter=None)


def test_components_of_different_length():
    queue = fifo(types=(tf.int64, tf.int64), shapes=None)
    with pytest.raises(tf.errors.InvalidArgumentError, match="same size in the 0th dimension"):
        queue.enqueue_many([np.zeros(2, int), np.zeros(3, int)], None)
    with pytest.raises(tf.errors.InvalidArgumentError, match="specified shapes"):
        queue.dequeue_many(2, None)


def test_who_waits_for_more_gets_nothing_of_what_was_replaced():
    queue, other = fifo(capacity=2), fifo(capacity=2)
    start(queue.enqueue_many, [np.array([1, 2])])
    taking = start(queue.dequeue_many, 3)
    start(other.enqueue_many, [np.array([3, 4, 5, 6])])
    queue.replace(other.contents())
    assert done(taking) == ([3, 4, 5],)
    assert done(start(queue.dequeue)) == (6,)
