"""Programs with queues, run by runnel and by TensorFlow: values, errors and static shapes agree."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as reference

import runnel
from tests.runtime.test_waiting import asleep


class Trace:
    """What a program saw: values as plain Python, errors by name."""

    def __init__(self, tf: Any, sess: Any) -> None:
        self.tf = tf
        self.sess = sess
        self.seen: list[Any] = []
        self.threads: list[threading.Thread] = []

    def run(self, fetch: Any, feed: Any = None) -> None:
        """Runs a step and notes its values or its error."""
        self.seen.append(self.outcome(lambda: self.sess.run(fetch, feed)))

    def shape(self, tensors: Any) -> None:
        """Notes static shapes."""
        for tensor in tensors if isinstance(tensors, list | tuple) else [tensors]:
            shape = tensor.get_shape()
            self.seen.append(None if shape.ndims is None else shape.as_list())

    def attempt(self, function: Callable[[], Any]) -> None:
        """Notes the error of building something, if there is one."""
        try:
            function()
            self.seen.append("built")
        except (ValueError, TypeError) as error:
            self.seen.append(type(error).__name__)

    def outcome(self, function: Callable[[], Any]) -> Any:
        try:
            return plain(function())
        except self.tf.errors.OpError as error:
            return type(error).__name__

    def blocked(self, fetch: Any, feed: Any = None) -> Callable[[], None]:
        """Starts a step in a thread and sees that it blocks; the result notes how it ended."""
        ended: list[Any] = []
        thread = threading.Thread(
            target=lambda: ended.append(self.outcome(lambda: self.sess.run(fetch, feed))),
            daemon=True,
        )
        thread.start()
        self.threads.append(thread)
        if self.tf is runnel:
            asleep(self.sess, sum(thread.is_alive() for thread in self.threads))
        else:
            thread.join(0.05)  # TensorFlow does not tell that a step waits
        assert not ended, "it did not block"

        def join() -> None:
            thread.join(30)
            self.seen.append(ended[0])

        return join


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def trace(tf: Any, program: Callable[[Any, Trace], None]) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as sess:
        noted = Trace(tf, sess)
        program(tf, noted)
        return noted.seen


def fifo(tf, t):
    q = tf.FIFOQueue(3, [tf.int32, tf.float32], shapes=[[], [2]])
    t.shape([*q.dequeue(), *q.dequeue_many(2), *q.dequeue_up_to(2)])
    t.run(q.enqueue([1, [1.0, 2.0]]))
    t.run(q.enqueue_many([[2, 3], [[3.0, 4.0], [5.0, 6.0]]]))
    t.run(q.size())
    full = t.blocked(q.enqueue([4, [7.0, 8.0]]))
    t.run(q.dequeue())
    full()
    t.run(q.dequeue_many(3))
    t.run(q.is_closed())
    t.run(q.dequeue_many(0))
    t.run(q.enqueue_many([np.zeros(0, np.int32), np.zeros((0, 2), np.float32)]))


def larger_than_the_queue(tf, t):
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    take = t.blocked(q.dequeue_many(5))
    t.run(q.enqueue_many([[1, 2, 3, 4]]))
    t.run(q.size())
    t.run(q.enqueue(5))
    take()
    put = t.blocked(q.enqueue_many([[6, 7, 8, 9, 10]]))
    t.run(q.size())
    t.run(q.dequeue_many(5))
    put()


def fairness(tf, t):
    q = tf.FIFOQueue(10, tf.int32, shapes=[[]])
    joins = [t.blocked(q.dequeue_many(n)) for n in (3, 1, 2)]
    t.run(q.enqueue_many([list(range(6))]))
    for join in joins:
        join()


def closing(tf, t):
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    t.run(q.enqueue_many([[1, 2]]))
    put = t.blocked(q.enqueue(3))
    close = t.blocked(q.close())
    t.run(q.is_closed())
    t.run(q.dequeue())
    put()
    close()
    t.run(q.is_closed())
    t.run(q.enqueue(4))
    t.run(q.close())
    t.run(q.close(cancel_pending_enqueues=True))
    t.run(q.dequeue_many(3))
    t.run(q.dequeue_up_to(3))
    t.run(q.dequeue_up_to(3))
    t.run(q.dequeue())


def closing_at_once(tf, t):
    q = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    t.run(q.enqueue(1))
    puts = [t.blocked(q.enqueue(2)), t.blocked(q.enqueue_many([[3, 4]]))]
    t.run(q.close(cancel_pending_enqueues=True))
    for put in puts:
        put()
    t.run(q.dequeue())


def closing_on_those_who_take(tf, t):
    q = tf.FIFOQueue(10, tf.int32, shapes=[[]])
    t.run(q.enqueue_many([[1, 2]]))
    many = t.blocked(q.dequeue_many(3))
    up_to = t.blocked(q.dequeue_up_to(3))
    one = t.blocked(q.dequeue())
    t.run(q.close())
    many()
    up_to()
    one()


def deadlines(tf, t):
    q = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    take = q.dequeue()
    options = tf.RunOptions(timeout_in_ms=30)
    t.seen.append(t.outcome(lambda: t.sess.run(take, options=options)))
    t.run(q.enqueue(1))
    t.run(take)


def closing_the_session(tf, t):
    q = tf.FIFOQueue(1, tf.int32, shapes=[[]])
    take = t.blocked(q.dequeue())
    t.sess.close()
    take()


def shuffled(tf, t):
    q = tf.RandomShuffleQueue(30, 5, [tf.int32, tf.string], shapes=[[], []], seed=7)
    t.run(q.enqueue_many([list(range(26)), [chr(97 + i) for i in range(26)]]))
    t.run(q.dequeue())
    t.run(q.dequeue_many(10))
    t.run(q.dequeue_many(9))
    more = t.blocked(q.dequeue_many(2))
    t.run(q.enqueue_many([[50, 51, 52], ["x", "y", "z"]]))
    more()
    rest = t.blocked(q.dequeue_many(4))
    t.run(q.close())
    rest()
    t.run(q.dequeue_up_to(100))
    t.run(tf.RandomShuffleQueue(3, 3, tf.int32).size())


def prioritized(tf, t):
    q = tf.PriorityQueue(20, [tf.string, tf.int32], shapes=[[], [2]])
    t.shape(q.dequeue())
    numbers = np.array([[i, i] for i in range(5)], np.int32)
    t.run(q.enqueue_many([np.array([5, -1, 3, 9, 0]), list("abcde"), numbers]))
    t.run(q.dequeue())
    t.run(q.enqueue([np.int64(2), "f", [9, 9]]))
    t.run(q.dequeue_many(4))
    priority = tf.placeholder(tf.int64)
    t.run(q.enqueue([priority, "g", [1, 1]]), {priority: [1, 2]})


def padded(tf, t):
    q = tf.PaddingFIFOQueue(10, [tf.int32, tf.string], shapes=[[None, 2], [None]])
    t.shape([*q.dequeue(), *q.dequeue_many(2)])
    for n in (1, 3, 2):
        t.run(q.enqueue([np.full((n, 2), n, np.int32), ["x"] * n]))
    t.run(q.dequeue())
    t.run(q.dequeue_many(2))
    x = tf.placeholder(tf.int32)
    t.run(q.enqueue([x, ["x"]]), {x: np.zeros((1, 3))})
    t.run(q.dequeue_many(0))


def without_shapes(tf, t):
    q = tf.FIFOQueue(10, tf.float32)
    t.shape(q.dequeue())
    t.run(q.enqueue([[1.0, 2.0]]))
    t.run(q.enqueue(3.0))
    t.run(q.dequeue())
    t.run(q.dequeue())
    t.run(q.dequeue_many(1))


def mistakes(tf, t):
    q = tf.FIFOQueue(10, [tf.int32, tf.int32], shapes=[[], []])
    x, n = tf.placeholder(tf.int32), tf.placeholder(tf.int32, [])
    t.run(q.enqueue([x, 1]), {x: [1, 2]})
    t.run(q.enqueue_many([x, [1, 2]]), {x: [1, 2, 3]})
    t.run(q.enqueue_many([x, [1, 2]]), {x: [[1, 2], [3, 4]]})
    t.run(q.dequeue_many(n), {n: -1})
    t.attempt(lambda: q.dequeue_many(-1))
    t.attempt(lambda: q.enqueue([[1, 2], 1]))
    t.attempt(lambda: q.enqueue_many([[1, 2], [1, 2, 3]]))
    t.attempt(lambda: q.enqueue([1.5, 2]))
    t.attempt(lambda: tf.FIFOQueue(1, tf.int32, shapes=[[None]]))
    t.attempt(lambda: tf.QueueBase.from_list(0, [q, tf.FIFOQueue(1, tf.int32)]))


def shared(tf, t):
    a = tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="s")
    b = tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="s")
    with tf.container("elsewhere"):
        c = tf.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="s")
    t.run(a.enqueue(3))
    t.run(b.size())
    t.run(c.size())
    t.run(tf.FIFOQueue(6, tf.int32, shapes=[[]], shared_name="s").size())
    t.run(tf.FIFOQueue(5, tf.float32, shapes=[[]], shared_name="s").size())
    t.run(tf.FIFOQueue(5, tf.int32, shapes=[[2]], shared_name="s").size())
    t.run(tf.PaddingFIFOQueue(5, tf.int32, shapes=[[]], shared_name="s").size())


def chosen(tf, t):
    queues = [tf.FIFOQueue(5, tf.int32, shapes=[[]]) for _ in range(3)]
    which = tf.placeholder(tf.int32, [])
    q = tf.QueueBase.from_list(which, queues)
    t.shape(q.dequeue())
    t.run(q.enqueue(7), {which: 2})
    t.run([other.size() for other in queues])
    t.run(q.dequeue(), {which: 2})


def accumulated(tf, t):
    a = tf.ConditionalAccumulator(tf.float32, shape=[2])
    t.shape(a.take_grad(1))
    take = t.blocked(a.take_grad(3))
    for i in range(3):
        t.run(a.apply_grad([float(i), 1.0], local_step=i))
    take()
    t.run(a.num_accumulated())
    t.run(a.apply_grad([1.0, 1.0], local_step=0))
    t.run(a.num_accumulated())
    t.run(a.set_global_step(7))
    t.run(a.apply_grad([1.0, 1.0], local_step=6))
    t.run(a.apply_grad([1.0, 3.0], local_step=7))
    t.run(a.take_grad(1))
    t.run(a.take_grad(0))
    x = tf.placeholder(tf.float32)
    t.run(a.apply_grad(x, local_step=8), {x: [1.0, 2.0, 3.0]})
    total = tf.ConditionalAccumulator(tf.float64, reduction_type="SUM")
    t.run(total.apply_grad(np.array([1.0, 2.0])))
    t.run(total.apply_grad(np.array([3.0, 4.0])))
    t.run(total.take_grad(2))


def sparsely_accumulated(tf, t):
    for kwargs in ({}, {"shape": [5, 2]}, {"reduction_type": "SUM"}):
        a = tf.SparseConditionalAccumulator(tf.float32, **kwargs)
        t.run(a.apply_grad([0, 3], [[1.0, 2.0], [3.0, 4.0]]))
        t.run(a.apply_grad([3, 4], [[5.0, 6.0], [7.0, 8.0]]))
        t.run(a.num_accumulated())
        t.run(list(a.take_grad(2)))
    slices = tf.IndexedSlices(tf.constant([[1.0, 1.0]]), tf.constant([2], tf.int64))
    t.run(a.apply_indexed_slices_grad(slices, local_step=5))
    taken = a.take_indexed_slices_grad(1)
    t.run([taken.indices, taken.values])


def gradients_by_queue(tf, t):
    """A step that takes a batch and trains."""
    q = tf.FIFOQueue(10, [tf.float32, tf.float32], shapes=[[2], []])
    x, y = q.dequeue_many(2)
    w = tf.Variable([0.5, -0.5], use_resource=True)
    loss = tf.reduce_sum(tf.square(tf.reduce_sum(x * w, 1) - y))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    t.run(tf.global_variables_initializer())
    t.run(q.enqueue_many([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], [1.0, 2.0, 3.0, 4.0]]))
    for _ in range(2):
        t.run(train)
        t.seen.append(np.round(t.sess.run(w), 4).tolist())


PROGRAMS = {
    function.__name__: function
    for function in (
        fifo,
        larger_than_the_queue,
        fairness,
        closing,
        closing_at_once,
        closing_on_those_who_take,
        deadlines,
        closing_the_session,
        shuffled,
        prioritized,
        padded,
        without_shapes,
        mistakes,
        shared,
        chosen,
        accumulated,
        sparsely_accumulated,
        gradients_by_queue,
    )
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_see_the_same(name):
    assert trace(runnel, PROGRAMS[name]) == trace(reference, PROGRAMS[name])
