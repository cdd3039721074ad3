"""Data and model parallelism in one graph: two replicas, each with its layers on two tasks."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.distributed.clusters import servers

pytestmark = pytest.mark.timeout(120)
STEPS, RATE = 20, 0.1


def layers(x, y, first, second):
    """The loss of two layers, each where it is told to be; variables are where the scope says."""
    with tf.device(first):
        hidden = tf.tanh(x @ tf.get_variable("w1", [4, 8], tf.float64))
    with tf.device(second):
        return tf.reduce_mean(tf.square(hidden @ tf.get_variable("w2", [8, 1], tf.float64) - y))


def beginning():
    return tf.random_normal_initializer(seed=5)


def data(replica):
    random = np.random.RandomState(replica)
    x = random.randn(6, 4)
    return x, np.sin(x.sum(1, keepdims=True))


def trained_alone():
    x, y = (np.concatenate(part) for part in zip(data(0), data(1)))
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(1)
        with tf.variable_scope("", initializer=beginning()):
            loss = layers(tf.constant(x), tf.constant(y), None, None)
        train = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        sess.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            sess.run(train)
        return sess.run(tf.trainable_variables())


def test_replicas_whose_layers_lie_on_different_tasks_are_one_large_batch():
    with servers(ps=2, worker=4) as cluster, tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        optimizer = tf.train.GradientDescentOptimizer(RATE)
        towers = []
        for replica in range(2):
            # Layers of a replica are on two workers; both replicas share the servers' variables.
            places = [
                tf.train.replica_device_setter(
                    ps_tasks=2, worker_device=f"/job:worker/task:{2 * replica + layer}"
                )
                for layer in range(2)
            ]
            with tf.variable_scope("", initializer=beginning(), reuse=replica > 0):
                loss = layers(*map(tf.constant, data(replica)), *places)
            towers.append(optimizer.compute_gradients(loss))
        mean = [
            ((one + other) / 2, variable)
            for (one, variable), (other, _) in zip(*towers, strict=True)
        ]
        train = optimizer.apply_gradients(mean)
        used = {op.device for op in graph.get_operations() if op.type == "MatMul"}
        assert {f"/job:worker/task:{task}" for task in range(4)} <= used
        with tf.Session(cluster["worker0"].target) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(STEPS):
                sess.run(train)
            found = sess.run(tf.trainable_variables())
    for got, wanted in zip(found, trained_alone(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
