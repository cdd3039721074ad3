"""Synchronous training on a cluster: one update of many workers' gradients, with backups."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

import runnel as tf
from tests.distributed.clusters import servers
from tests.distributed.replicas import LIMIT, monitored, replica_device, run_all

pytestmark = pytest.mark.timeout(120)


def network(x, y):
    """A small network in 64 bits; returns its loss."""
    options = {"dtype": tf.float64, "initializer": tf.random_normal_initializer(seed=3)}
    hidden = tf.tanh(tf.matmul(x, tf.get_variable("w1", [4, 8], **options)))
    return tf.reduce_mean(
        tf.square(tf.matmul(hidden, tf.get_variable("w2", [8, 1], **options)) - y)
    )


def inputs():
    return tf.placeholder(tf.float64, [None, 4]), tf.placeholder(tf.float64, [None, 1])


def batches(worker: int, steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.RandomState(worker)
    xs = [random.randn(5, 4) for _ in range(steps)]
    return [(x, np.sin(x.sum(1, keepdims=True))) for x in xs]


def test_as_many_gradients_as_workers_are_one_large_batch():
    count, steps = 3, 200
    # Each takes its token before anyone begins the next step.
    together = threading.Barrier(count)
    found = {}

    def work(index, cluster):
        with replica_device(cluster["ps0"].server_def.cluster, index):
            step = tf.train.get_or_create_global_step()
            x, y = inputs()
            loss = network(x, y)
            optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.MomentumOptimizer(0.05, 0.9), replicas_to_aggregate=count
            )
            train = optimizer.minimize(loss, global_step=step)
            dropped = optimizer.num_dropped()
        hook = optimizer.make_session_run_hook(index == 0, num_tokens=0)
        with monitored(cluster[f"worker{index}"].target, index == 0, hook) as sess:
            for rows, values in batches(index, steps):
                sess.run(train, {x: rows, y: values})
                together.wait(LIMIT)
            if index == 0:
                found["w"] = sess.run(tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES))
                found["step"], found["dropped"] = sess.run([step, dropped])
            together.wait(LIMIT)

    with servers(ps=2, worker=count) as cluster:
        run_all(*(partial(work, index, cluster) for index in range(count)))

    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = inputs()
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(network(x, y))
        sess.run(tf.global_variables_initializer())
        for parts in zip(*(batches(index, steps) for index in range(count)), strict=True):
            rows, values = (np.concatenate(part) for part in zip(*parts, strict=True))
            sess.run(train, {x: rows, y: values})
        expected = sess.run(tf.trainable_variables())
    for got, wanted in zip(found["w"], expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
    assert (found["step"], found["dropped"]) == (steps, 0)


class Worker:
    """A worker whose gradient is fed, in a session of its own."""

    def __init__(self, cluster, index, aggregate, total):
        self.graph = tf.Graph()
        with self.graph.as_default():
            with replica_device(cluster["ps0"].server_def.cluster, index):
                self.step = tf.train.get_or_create_global_step()
                self.w = tf.get_variable("w", [], tf.float64, tf.zeros_initializer())
                self.gradient = tf.placeholder(tf.float64, [])
                optimizer = tf.train.SyncReplicasOptimizer(
                    tf.train.GradientDescentOptimizer(1.0), aggregate, total
                )
                self.train = optimizer.apply_gradients([(self.gradient, self.w)], self.step)
                self.dropped = optimizer.num_dropped()
            hook = optimizer.make_session_run_hook(index == 0, num_tokens=0)
            self.session = monitored(cluster[f"worker{index}"].target, index == 0, hook)

    def begin(self, gradient):
        """Starts a step in a thread, which ends when the worker has its token."""
        thread = threading.Thread(target=self.run, args=(gradient,))
        thread.start()
        return thread

    def run(self, gradient):
        with self.graph.as_default():
            self.session.run(self.train, {self.gradient: gradient})

    def look(self):
        with self.graph.as_default():
            return tuple(float(v) for v in self.session.run([self.step, self.w, self.dropped]))

    def close(self):
        with self.graph.as_default():
            self.session.close()


def test_the_first_gradients_count_and_late_ones_are_dropped_and_counted():
    with servers(ps=1, worker=3) as cluster:
        workers = [Worker(cluster, index, aggregate=2, total=3) for index in range(3)]
        first, second, late = workers
        steps = [first.begin(1.0), second.begin(3.0)]
        for thread in steps:
            thread.join(LIMIT)
        assert first.look() == (1, -2.0, 0)
        late.run(1000.0)  # computed at step 0, which is over: it goes on at once
        assert first.look() == (1, -2.0, 1)
        # The second one is gone; the others are enough, and the late one is late no more.
        second.close()
        waiting = first.begin(2.0)
        late.run(4.0)
        waiting.join(LIMIT)
        assert first.look() == (2, -5.0, 1)
        # Back again, at the step where the job is.
        second = Worker(cluster, 1, aggregate=2, total=3)
        waiting = second.begin(1.0)
        first.run(1.0)
        waiting.join(LIMIT)
        assert first.look() == (3, -6.0, 1)
        for worker in (first, second, late):
            worker.close()


def test_rows_are_averaged_over_the_gradients_that_have_them():
    found = {}

    def work(index, cluster):
        with replica_device(cluster["ps0"].server_def.cluster, index):
            step = tf.train.get_or_create_global_step()
            table = tf.get_variable("table", [4, 2], tf.float64, tf.zeros_initializer())
            loss = tf.reduce_sum(tf.gather(table, [0, 1] if index == 0 else [1, 2, 2]))
            optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2)
            train = optimizer.minimize(loss, global_step=step)
        hook = optimizer.make_session_run_hook(index == 0, num_tokens=0)
        with monitored(cluster[f"worker{index}"].target, index == 0, hook) as sess:
            sess.run(train)
            found[index] = sess.run(table)

    with servers(ps=1, worker=2) as cluster:
        run_all(*(partial(work, index, cluster) for index in range(2)))
    for table in found.values():
        np.testing.assert_array_equal(table[:, 0], [-1.0, -1.0, -2.0, 0.0])


def test_what_is_missing_is_said():
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [])
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 3, 2)
    with pytest.raises(ValueError, match="after apply_gradients"):
        optimizer.get_chief_queue_runner()
    with pytest.raises(ValueError, match="before using the hook"):
        optimizer.make_session_run_hook(True).begin()
    with pytest.raises(ValueError, match="Global step is required"):
        optimizer.minimize(w * w)
    with pytest.raises(ValueError, match="at least one variable"):
        optimizer.apply_gradients([], step)
    optimizer.minimize(w * w, global_step=step)
    with pytest.raises(ValueError, match="Too few tokens"):
        optimizer.get_init_tokens_op(0)
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(w, "m") in optimizer.variables()


def test_moving_averages_follow_the_updates():
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    averages = tf.train.ExponentialMovingAverage(0.5)
    optimizer = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(1.0),
        1,
        variable_averages=averages,
        variables_to_average=[w],
    )
    train = optimizer.apply_gradients([(tf.constant(-2.0), w)], step)
    with monitored("", True, optimizer.make_session_run_hook(True, num_tokens=0)) as sess:
        sess.run(train)
        sess.run(train)  # the average of the first update is there before the second is taken
        assert sess.run(averages.average(w)) in (1.0, 2.5)
