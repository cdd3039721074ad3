"""Training steps behind queues: a branch that chooses the queue, towers that share one.

What is in front of a step must cost what it costs, and leave the step itself as it is: compiled,
in place, on its devices.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy

from benchmarks.frontends import load_frontend
from benchmarks.workload import Workload

BATCH = 64
SIDE = 28


def _batch() -> tuple[Any, Any]:
    rng = numpy.random.default_rng(1)
    images = rng.normal(size=(BATCH, SIDE, SIDE, 1)).astype(numpy.float32)
    return images, rng.integers(0, 10, BATCH).astype(numpy.int32)


def _elements(tf: Any) -> list[tuple[Any, tuple[int, ...]]]:
    return [(tf.float32, (BATCH, SIDE, SIDE, 1)), (tf.int32, (BATCH,))]


def _queue(tf: Any) -> Any:
    types, shapes = zip(*_elements(tf), strict=True)
    return tf.FIFOQueue(16, list(types), shapes=list(shapes))


def _keep_full(session: Any, queues: list[Any], fed: list[Any], batch: Any) -> None:
    """Threads that fill the queues for as long as the process lives."""
    for queue in queues:
        fill = session.make_callable(queue.enqueue(fed), fed)

        def feed(fill: Any = fill) -> None:
            while True:
                fill(*batch)

        threading.Thread(target=feed, daemon=True).start()


def _loss(tf: Any, images: Any, labels: Any, weights: list[Any]) -> Any:
    """A small convolutional network with sparse labels, whose range is checked."""
    hidden = images
    for kernel in weights[:2]:
        hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
        hidden = tf.nn.max_pool(hidden, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    flat = tf.reshape(hidden, [-1, 7 * 7 * 64])
    logits = tf.matmul(tf.nn.relu(tf.matmul(flat, weights[2])), weights[3])
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )


def _weights(tf: Any) -> list[Any]:
    rng = numpy.random.default_rng(0)
    shapes = [(5, 5, 1, 32), (5, 5, 32, 64), (7 * 7 * 64, 512), (512, 10)]
    return [tf.Variable((rng.normal(size=s) * 0.05).astype(numpy.float32)) for s in shapes]


def _measured(session: Any, fetches: list[Any], feeds: list[Any], fed: list[Any]) -> Workload:
    step = session.make_callable(fetches, feeds)
    losses = [float(step(*fed)[0]) for _ in range(5)]

    def run(iterations: int) -> None:
        for _ in range(iterations):
            step(*fed)

    return Workload(run, facts=lambda: {"losses": losses})


def chosen_queue(frontend: str, source: str) -> Workload:
    """A training step behind one queue, or behind the one of two that a fed predicate chooses."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        fed = [
            tf.placeholder(tf.float32, [BATCH, SIDE, SIDE, 1]),
            tf.placeholder(tf.int32, [BATCH]),
        ]
        training = tf.placeholder(tf.bool, [])
        queues = [_queue(tf)]
        if source == "two queues":
            queues.append(_queue(tf))
            images, labels = tf.cond(training, queues[0].dequeue, queues[1].dequeue)
            images.set_shape([BATCH, SIDE, SIDE, 1])
            labels.set_shape([BATCH])
        else:
            images, labels = queues[0].dequeue()
        loss = _loss(tf, images, labels, _weights(tf))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    _keep_full(session, queues, fed, _batch())
    feeds = [training] if source == "two queues" else []
    return _measured(session, [loss, train], feeds, [True] * len(feeds))


def towers(frontend: str, source: str) -> Workload:
    """Two towers on two devices, each with half of a batch, from a queue or constant."""
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        fed = [
            tf.placeholder(tf.float32, [BATCH, SIDE, SIDE, 1]),
            tf.placeholder(tf.int32, [BATCH]),
        ]
        with tf.device("/cpu:0"):
            queue = _queue(tf)
            taken = queue.dequeue() if source == "queue" else list(map(tf.constant, _batch()))
            weights = _weights(tf)
        halves = [tf.split(whole, 2) for whole in taken]
        losses, gradients = [], []
        for number in (0, 1):
            with tf.device(f"/cpu:{number}"):
                loss = _loss(tf, halves[0][number], halves[1][number], weights)
                losses.append(loss)
                gradients.append(tf.gradients(loss, weights))
        with tf.device("/cpu:0"):
            updates = [
                tf.assign_sub(weight, 0.005 * (one + other))
                for weight, one, other in zip(weights, *gradients, strict=True)
            ]
            total, train = losses[0] + losses[1], tf.group(*updates)
        session = tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))
        session.run(tf.global_variables_initializer())
    if source == "queue":
        _keep_full(session, [queue], fed, _batch())
    return _measured(session, [total, train], [], [])


def loop_over_queue(frontend: str, iterations: int) -> Workload:
    """A loop that takes an element from a queue in each iteration; one unit of work is the loop."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(iterations, [tf.float32], shapes=[[]])
        fill = queue.enqueue_many([tf.ones([iterations])])
        _, total = tf.while_loop(
            lambda i, _: i < iterations,
            lambda i, total: (i + 1, total + queue.dequeue()),
            (tf.constant(0), tf.constant(0.0)),
        )
        session = tf.Session()
    fills, step = session.make_callable(fill), session.make_callable(total)

    def run(times: int) -> None:
        for _ in range(times):
            fills()
            step()

    def facts() -> dict[str, Any]:
        fills()
        return {"right": float(step()) == iterations}

    return Workload(run, facts)


def loop_over_devices(frontend: str, iterations: int) -> Workload:
    """A loop whose body computes on two devices; one unit of work is the loop."""
    tf = load_frontend(frontend)
    with tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, [64, 64])

        def body(i: Any, value: Any) -> Any:
            with tf.device("/cpu:1"):
                product = tf.matmul(value, fed)
            with tf.device("/cpu:0"):
                return i + 1, tf.tanh(product + 0.5)

        with tf.device("/cpu:0"):
            start = (tf.constant(0), tf.ones([64, 64]))
            _, last = tf.while_loop(lambda i, _: i < iterations, body, start)
            total = tf.reduce_sum(last)
        session = tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))
    step = session.make_callable(total, [fed])
    matrix = numpy.random.default_rng(0).normal(size=(64, 64)).astype(numpy.float32) * 0.05

    def run(times: int) -> None:
        for _ in range(times):
            step(matrix)

    return Workload(run, facts=lambda: {"sums": [float(step(matrix))]})
