"""Optimizers of ``tf.contrib.opt`` for workers with variables of their own, and stale gradients."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

import runnel as tf
from tests.conftest import leaves_no_thread
from tests.distributed.clusters import servers
from tests.distributed.replicas import LIMIT, monitored, run_all

pytestmark = pytest.mark.timeout(120)
RATE = 0.125
GOALS = np.array([[1.0, 2.0], [3.0, -1.0]])
START = np.array([2.0, 2.0])

_no_leaked_threads = pytest.fixture(autouse=True, scope="module", name="_no_leaked_threads")(
    leaves_no_thread
)


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=1, worker=2) as found:
        yield found


@pytest.fixture(autouse=True)
def _no_state_left(cluster):
    yield
    for server in cluster.values():
        tf.Session.reset(server.target)


def model(getter, index, **options):
    """The global step, a variable of the worker's own, and how far it is from the worker's goal."""
    place = tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{index}")
    with tf.device(place), tf.variable_scope("", custom_getter=getter):
        step = tf.train.get_or_create_global_step()
        with tf.variable_scope("layer", **options):
            w = tf.get_variable("w", [2], tf.float64, tf.constant_initializer(START[0]))
        whole = tf.convert_to_tensor(w)
        return step, whole, tf.reduce_sum(tf.square(whole - GOALS[index]))


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_workers_average_their_models(cluster, resource):
    interval, steps = 3, 9
    found = {}
    begun = threading.Barrier(2)

    def work(index):
        getter = tf.contrib.opt.ModelAverageCustomGetter(f"/job:worker/task:{index}")
        step, w, loss = model(getter, index, use_resource=resource)
        optimizer = tf.contrib.opt.ModelAverageOptimizer(
            tf.train.GradientDescentOptimizer(RATE), 2, index == 0, getter, interval
        )
        with tf.device(f"/job:worker/task:{index}"):
            train = optimizer.minimize(loss, global_step=step)
        [own] = tf.trainable_variables()
        assert own in tf.local_variables() and own.device == f"/job:worker/task:{index}"
        [center] = [v for v in tf.global_variables() if v.op.name.startswith("global_center")]
        assert center.op.name == "global_center_variable/layer/w"
        hook = optimizer.make_session_run_hook()
        with monitored(cluster[f"worker{index}"].target, index == 0, hook) as sess:
            begun.wait(LIMIT)
            for _ in range(steps):
                sess.run(train)
            found[index] = sess.run([own, center, step])
            begun.wait(LIMIT)

    run_all(*(partial(work, index) for index in range(2)))
    own = np.array([START, START])
    for number in range(1, steps + 1):
        own -= RATE * 2 * (own - GOALS)
        if number % interval == 0:
            own[:] = own.mean(0)
    for index in range(2):
        np.testing.assert_allclose(found[index][0], own[index], rtol=1e-12)
        np.testing.assert_allclose(found[index][1], own[index], rtol=1e-12)
        assert found[index][2] == steps // interval


@pytest.mark.parametrize("parts", [None, 2])
def test_a_model_and_its_center_draw_each_other_nearer(cluster, tmp_path, parts):
    period, steps, moving, rho = 2, 7, 0.25, 0.5
    getter = tf.contrib.opt.ElasticAverageCustomGetter("/job:worker/task:0")
    partitioner = None if parts is None else tf.fixed_size_partitioner(parts)
    step, w, loss = model(getter, 0, partitioner=partitioner)
    optimizer = tf.contrib.opt.ElasticAverageOptimizer(
        tf.train.MomentumOptimizer(RATE, 0.5), 1, getter, period, moving, rho
    )
    with tf.device("/job:worker/task:0"):
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=step)
    assert all("global" in v.op.name for v in tf.global_variables())  # slots are the worker's own
    saver = optimizer.swapping_saver()
    with monitored(
        cluster["worker0"].target, True, optimizer.make_session_run_hook(True, 0)
    ) as sess:
        for _ in range(steps):
            sess.run(train)
        found, count = sess.run([w, step])
        path = saver.save(sess._sess, str(tmp_path / "model"))
    own, center, seen, moment = START.copy(), START.copy(), START.copy(), np.zeros(2)
    for number in range(1, steps + 1):
        moment = 0.5 * moment + 2 * (own - GOALS[0]) + rho * (own - seen)
        own = own - RATE * moment
        if number % period == 0:
            seen = center.copy()
            pull = moving * (own - seen)
            own, center = own - pull, center + pull
    np.testing.assert_allclose(found, own, rtol=1e-12)
    np.testing.assert_allclose(tf.train.load_variable(path, "layer/w"), center, rtol=1e-12)
    assert count == steps // period


def test_gradients_that_come_too_late_are_dropped():
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    others = tf.placeholder(tf.int64, [])
    optimizer = tf.contrib.opt.DropStaleGradientOptimizer(
        tf.train.GradientDescentOptimizer(1.0), staleness=2
    )
    pairs = optimizer.compute_gradients(3.0 * w)
    with tf.control_dependencies([pairs[0][0]]):
        meanwhile = step.assign_add(others)
    with tf.control_dependencies([meanwhile]):
        late = [(tf.identity(grad), variable) for grad, variable in pairs]
        train = optimizer.apply_gradients(late, global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        found = [(sess.run(train, {others: n}), sess.run([w, step])) for n in (0, 2, 3, 1, 9)]
    assert [dropped for dropped, _ in found] == [0, 0, 1, 1, 2]
    assert [int(count) for _, (_, count) in found] == [1, 4, 7, 9, 18]
    assert found[-1][1][0] == -9.0
