"""Mixed precision in every kind of step: with queues, and node by node as inputs arrive.

1 + 2**-10 is a float32, but rounds to 1 in bfloat16; so a product tells in which type it was made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as tf
from runnel.runtime.schedule.unit import RegionUnit
from tests.both_tiers import COMPILED, INTERPRETED, session

TELLING = np.float32(1 + 2**-10)
TYPES = pytest.mark.parametrize(
    ("dtype", "expected"), [(None, TELLING), (tf.bfloat16, np.float32(1))]
)
experimental = tf.train.experimental


def event_driven() -> tf.Session:
    config = tf.ConfigProto()
    config.experimental.executor_type = "DATAFLOW"
    return tf.Session(config=config)


def executor(sess: tf.Session) -> Any:
    """What ran the latest new step of ``sess``."""
    *_, prepared = sess._prepared.values()
    return prepared.plan.schedule


def runs_dynamically(schedule: Any) -> bool:
    return any(isinstance(unit, RegionUnit) for unit in schedule.units)


def square_matrix(value: float) -> tf.Variable:
    return tf.Variable(np.eye(2, dtype=np.float32) * np.float32(value))


@TYPES
@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_a_step_with_a_queue(level, dtype, expected):
    queue = tf.FIFOQueue(2, tf.float32, [[1, 2]])
    w = square_matrix(1.0)
    product = tf.matmul(queue.dequeue(), w)
    tf.get_default_graph().set_mixed_precision(dtype)
    with session(level) as sess:
        sess.run(w.initializer)
        sess.run(queue.enqueue([[[TELLING, -TELLING]]]))
        np.testing.assert_array_equal(sess.run(product), [[expected, -expected]])


@TYPES
def test_a_loop_that_waits_in_each_iteration(dtype, expected):
    queue = tf.FIFOQueue(3, tf.float32, [[1, 2]])
    w = square_matrix(1.0)
    _, total = tf.while_loop(
        lambda i, total: i < 3,
        lambda i, total: (i + 1, total + tf.matmul(queue.dequeue(), w)),
        (tf.constant(0), tf.zeros([1, 2])),
    )
    tf.get_default_graph().set_mixed_precision(dtype)
    with tf.Session() as sess:
        sess.run(w.initializer)
        for _ in range(3):
            sess.run(queue.enqueue([[[TELLING, 2 * TELLING]]]))
        # The sum is one of float32: it does not lose what bfloat16 would.
        np.testing.assert_allclose(sess.run(total), [[3 * expected, 6 * expected]], 1e-6)
        assert runs_dynamically(executor(sess))


@TYPES
@pytest.mark.parametrize("use_resource", [False, True])
def test_each_use_sees_the_variable_of_its_time(use_resource, dtype, expected):
    x = tf.placeholder(tf.float32, [1, 2])
    w = tf.Variable(np.eye(2, dtype=np.float32), use_resource=use_resource)

    before = tf.matmul(x, w)
    factor = tf.cond(tf.reduce_sum(x) > 0.0, lambda: 2.0, lambda: 3.0)
    with tf.control_dependencies([before]):
        doubled = w.assign(w * factor)
    with tf.control_dependencies([doubled]):
        after = tf.matmul(x, w)
    tf.get_default_graph().set_mixed_precision(dtype)
    with event_driven() as sess:
        sess.run(w.initializer)
        fed = {x: [[TELLING, 0.0]]}
        found = sess.run([before, after], fed)
        assert runs_dynamically(executor(sess))
    np.testing.assert_array_equal(np.concatenate(found)[:, 0], expected * np.float32([1, 2]))


def recurrent() -> tuple[list[Any], tf.Variable]:
    """A recurrence and its gradient."""
    generator = np.random.default_rng(0)
    w = tf.Variable((generator.standard_normal((6, 6)) / 3).astype(np.float32))
    x = tf.constant(generator.standard_normal((4, 6)).astype(np.float32))
    _, h = tf.while_loop(
        lambda i, h: i < 4, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), (tf.constant(0), x)
    )
    loss = tf.reduce_sum(tf.square(h))
    return [h, loss, *tf.gradients(loss, w)], w


def test_values_and_gradients_are_close_to_those_of_float32():
    fetches, w = recurrent()
    results = []
    for dtype in (None, tf.bfloat16):
        tf.get_default_graph().set_mixed_precision(dtype)
        with event_driven() as sess:
            sess.run(w.initializer)
            results.append(sess.run(fetches))
    for exact, rounded in zip(*results, strict=True):
        assert rounded.dtype == np.float32
        difference = np.linalg.norm(rounded - exact) / np.linalg.norm(exact)
        assert 0 < difference < 5e-2


# Loss scaling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["interpreted", "compiled", "event-driven"])
def test_loss_scaling_of_a_step_that_is_fed_by_a_queue(kind):
    queue = tf.FIFOQueue(8, tf.float32, [[]])
    w = tf.Variable([[1.0]])
    scale = experimental.DynamicLossScale(initial_loss_scale=2.0**15, increment_period=2)
    optimizer = experimental.enable_mixed_precision_graph_rewrite(
        tf.train.GradientDescentOptimizer(1.0), scale
    )
    loss = tf.reduce_sum(tf.matmul(tf.constant([[1.0]]), w)) * queue.dequeue()
    train = optimizer.minimize(loss)
    init = tf.global_variables_initializer()
    made = {"interpreted": lambda: session(INTERPRETED), "compiled": lambda: session(COMPILED)}
    with made.get(kind, event_driven)() as sess:
        sess.run(init)
        # A gradient that float16 cannot hold, unless it is scaled up.
        for factor in (2.0**-26, 2.0**-26):
            sess.run(queue.enqueue(np.float32(factor * 2.0**4)))
            sess.run(train)
        np.testing.assert_array_equal(sess.run(w), np.float32([[1 - 2 * 2.0**-22]]))
        assert sess.run(scale()) == 2.0**16, "two good steps in a row"
        before = sess.run(w)
        sess.run(queue.enqueue(np.float32(2.0**120)))  # times the scale: infinite
        sess.run(train)
        np.testing.assert_array_equal(sess.run(w), before)
        assert sess.run(scale()) == 2.0**15
