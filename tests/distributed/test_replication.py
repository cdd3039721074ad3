"""Replicas in one graph, and the layers of a model on several tasks, train as one process does."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from examples import model_parallel
from tests.distributed.clusters import servers

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=1, worker=2) as found:
        yield found


def losses_of(target, build, feeds, config=None):
    """The losses of some steps of the graph that ``build`` makes, which gives loss and step."""
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        placeholders, loss, train = build()
        with tf.Session(target, config=config) as sess:
            sess.run(tf.global_variables_initializer())
            return [
                sess.run([loss, train], dict(zip(placeholders, feed, strict=True)))[0]
                for feed in feeds
            ]


def test_replicas_in_one_graph_are_one_large_batch(cluster):
    random = np.random.RandomState(0)
    feeds = [(random.randn(8, 4), random.randn(8, 1)) for _ in range(20)]

    def build(devices, variables):
        x, y = tf.placeholder(tf.float64, [8, 4]), tf.placeholder(tf.float64, [8, 1])
        optimizer = tf.train.AdamOptimizer(0.01)
        with tf.device(variables):
            w1 = tf.get_variable("w1", [4, 6], tf.float64)
            w2 = tf.get_variable("w2", [6, 1], tf.float64)
        towers, losses = [], []
        halves = zip(tf.split(x, len(devices)), tf.split(y, len(devices)), strict=True)
        for device, (rows, values) in zip(devices, halves, strict=True):
            with tf.device(device):
                output = tf.matmul(tf.tanh(tf.matmul(rows, w1)), w2)
                losses.append(tf.reduce_mean(tf.square(output - values)))
                towers.append(tf.gradients(losses[-1], [w1, w2]))
        with tf.device(variables):
            means = [tf.add_n(parts) / len(parts) for parts in zip(*towers, strict=True)]
            train = optimizer.apply_gradients(zip(means, [w1, w2], strict=True))
            return (x, y), tf.add_n(losses) / len(losses), train

    workers = ["/job:worker/task:0", "/job:worker/task:1"]
    replicated = losses_of(
        cluster["worker0"].target, lambda: build(workers, "/job:ps/task:0"), feeds
    )
    alone = losses_of("", lambda: build([""], ""), feeds)
    np.testing.assert_allclose(replicated, alone, rtol=0, atol=1e-12)


def test_layers_on_several_tasks_are_one_model(cluster):
    random = np.random.RandomState(1)
    feeds = [(random.rand(6, 64).astype(np.float32), random.randint(0, 10, 6))] * 6

    def build(devices):
        images, labels, loss, _, train = model_parallel.build(devices, learning_rate=0.01)
        return (images, labels), loss, train

    tasks = ["/job:worker/task:0", "/job:worker/task:1", "/job:ps/task:0"]
    apart = losses_of(cluster["worker0"].target, lambda: build(tasks), feeds)
    together = losses_of("", lambda: build([""] * 3), feeds)
    np.testing.assert_allclose(apart, together, rtol=1e-5)
    assert apart[-1] < apart[0]


@pytest.mark.parametrize("tasks", [("worker/task:0", "worker/task:1"), ("worker/task:1", "ps")])
def test_cells_on_several_tasks_run_in_one_loop(cluster, tasks):
    # Updates of one task wait for loops that several make together; the group of all updates
    # waits for groups of each task's.
    random = np.random.RandomState(2)
    lengths = np.array([3, 5, 1, 4])
    feeds = [(random.randn(4, 5, 3), lengths), (random.randn(4, 5, 3), lengths[::-1])] * 3

    def build(devices):
        x, given = tf.placeholder(tf.float64, [4, 5, 3]), tf.placeholder(tf.int32, [4])
        cells = [
            tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.LSTMCell(4), device) for device in devices
        ]
        outputs, _ = tf.nn.dynamic_rnn(
            tf.nn.rnn_cell.MultiRNNCell(cells), x, given, dtype=tf.float64
        )
        loss = tf.reduce_mean(tf.square(outputs - 0.5))
        grads, _ = tf.clip_by_global_norm(tf.gradients(loss, tf.trainable_variables()), 1.0)
        pairs = list(zip(grads, tf.trainable_variables(), strict=True))
        step = tf.train.get_or_create_global_step()
        return (x, given), loss, tf.train.AdamOptimizer(0.05).apply_gradients(pairs, step)

    on_tasks = losses_of(
        cluster["worker0"].target, lambda: build([f"/job:{task}" for task in tasks]), feeds
    )
    alone = losses_of("", lambda: build(["", ""]), feeds)
    np.testing.assert_allclose(on_tasks, alone, rtol=1e-12)
    assert on_tasks[-1] < on_tasks[0]
