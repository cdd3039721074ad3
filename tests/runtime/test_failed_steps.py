"""A failed step has changed nothing: updates wait for what can fail, wherever that runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runnel as tf

LEVELS = pytest.mark.parametrize("level", [-1, 0, 1], ids=["interpreted", "default", "compiled"])

# Each fails when its argument is negative, and runs: compiled, on the host, or compiled behind
# something that the host has to compute first.
FAILING: dict[str, Callable[[tf.Tensor], Any]] = {
    "a reshape to a shape from data": lambda x: tf.reshape(
        x, [tf.size(tf.where(x > 0.0)) // tf.size(x) * tf.size(x), 1]
    ),
    "sorted segments": lambda x: tf.segment_sum(x, tf.cast(tf.cumsum(tf.sign(x)), tf.int32)),
    "a check": lambda x: tf.check_numerics(tf.log(x), "log of x"),
    "an assertion": lambda x: tf.Assert(tf.reduce_all(x > 0.0), [x]),
    "a Python function": lambda x: tf.py_func(_require_positive, [x], tf.float32),
    "a gather": lambda x: tf.gather(tf.constant([1.0] * 9), tf.cast(x, tf.int32)),
    "a product of unknown shapes": lambda x: tf.matmul(
        tf.reshape(tf.boolean_mask(x, x > 0.0), [1, -1]), tf.ones([4, 1])
    ),
    "a branch on the host": lambda x: tf.cond(
        x[1] > 0.0,
        lambda: tf.py_func(lambda a: a, [x], tf.float32),
        lambda: tf.py_func(_require_positive, [x], tf.float32),
    ),
    "a loop that blocks": lambda x: tf.while_loop(
        lambda i: i < 2, lambda i: i + _checked_size(x), [tf.constant(0)]
    ),
}


def _require_positive(x: np.ndarray) -> np.ndarray:
    if not np.all(x > 0):
        raise ValueError("not positive")
    return x


def _checked_size(x: tf.Tensor) -> tf.Tensor:
    queue = tf.FIFOQueue(4, tf.int32, [[]], shared_name="counted")
    with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0.0), [x])]):
        return queue.size() + 1


def updates(x: tf.Tensor) -> tuple[list[tf.Variable], list[Any]]:
    """Variables of both kinds, and operations that change each in its own way."""
    total = tf.Variable(0.0, name="total")
    table = tf.Variable(tf.zeros([8, 2]), use_resource=True, name="table")
    count = tf.Variable(0, name="count")
    seen = tf.Variable(["nothing"], name="seen")
    rows = tf.IndexedSlices(tf.ones([2, 2]), tf.constant([1, 3]))
    return [total, table, count, seen], [
        total.assign_add(tf.reduce_sum(tf.abs(x))),
        tf.group(table.scatter_sub(rows)),
        tf.assign_add(count, 1),
        seen.assign([tf.as_string(0)] if hasattr(tf, "as_string") else ["something"]),
    ]


@LEVELS
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("what", FAILING)
def test_nothing_has_changed(what: str, order: str, level: int) -> None:
    x = tf.placeholder(tf.float32, [None])
    failing: Any = None
    if order == "before":
        failing = FAILING[what](x)
    variables, changes = updates(x)
    if order == "after":
        failing = FAILING[what](x)
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):  # the plan is prepared anew for its second run
            before = sess.run(variables)
            with pytest.raises(tf.errors.OpError):
                sess.run([changes, failing], {x: [1.0, -2.0, 3.0, -4.0]})
            for old, new in zip(before, sess.run(variables), strict=True):
                np.testing.assert_array_equal(old, new)
            sess.run([changes, failing], {x: [1.0, 2.0, 3.0, 4.0]})
        counted = sess.run(variables[2])
    assert counted == 3


@LEVELS
def test_on_another_device(level: int) -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/cpu:1"):
        variables, changes = updates(x)
    with tf.device("/cpu:2"):
        failing = FAILING["a check"](x)
    config = tf.ConfigProto(device_count={"CPU": 3})
    config.graph_options.optimizer_options.global_jit_level = level
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(variables)
        with pytest.raises(tf.errors.InvalidArgumentError, match="log of x"):
            sess.run([changes, failing], {x: [1.0, -2.0]})
        for old, new in zip(before, sess.run(variables), strict=True):
            np.testing.assert_array_equal(old, new)


@LEVELS
def test_what_the_host_needs_of_an_update_is_stored_before(level: int) -> None:
    """The exception: a Python function that must see the new value."""
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(x)]):
        checked = tf.py_func(_require_positive, [tf.identity(v) - 10.0], tf.float32)
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    with tf.Session(config=config) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.OpError, match="not positive"):
            sess.run(checked, {x: 2.0})
        assert sess.run(v) == 3.0
