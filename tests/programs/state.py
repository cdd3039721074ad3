"""Variables, control dependencies, conditionals of state: what changes, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.programs.program import Program, values


def _assignments(resource: bool) -> Program:
    def build(tf: Any) -> list[list[Any]]:
        v = tf.get_variable("v", initializer=values(2, 3), use_resource=resource)
        grow = tf.group(v.assign(v * 2.0))
        add, sub = tf.assign_add(v, tf.ones([2, 3])), tf.assign_sub(v, 0.5 * tf.ones([2, 3]))
        return [[v], [grow], [v], [add], [sub], [v + 1.0], [v]]

    return Program(build)


def _slices(tf: Any) -> list[list[Any]]:
    v = tf.get_variable("v", initializer=values(4, 3))
    row = v[1].assign([7.0, 8.0, 9.0])
    block = v[2:, ::2].assign(tf.zeros([2, 2]))
    return [[row], [v], [block], [v], [v[0], v[:, 1]]]


def _ordered_by_control_edges(tf: Any) -> list[list[Any]]:
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    before = v.read_value()
    with tf.control_dependencies([before]):
        first = v.assign_add(2.0, read_value=False)
    with tf.control_dependencies([first]):
        second = v.assign(v.read_value() * 10.0, read_value=False)
    with tf.control_dependencies([second]):
        after = v.read_value()
    return [[before, after], [before, after], [v]]


def _group_and_tuple(tf: Any) -> list[list[Any]]:
    a, b = (tf.get_variable(n, initializer=values(2, seed=i)) for i, n in enumerate("ab"))
    together = tf.group(a.assign_add([1.0, 1.0]), b.assign_sub([2.0, 2.0]))
    new_a, new_b = tf.tuple([a.assign_add([1.0, 2.0]), tf.identity(values(2, seed=9))])
    return [[together], [a, b], [new_a, new_b], [a, b]]


def _count_up_to(tf: Any) -> list[list[Any]]:
    n = tf.get_variable("n", initializer=0, trainable=False)
    return [[n.count_up_to(5)], [n.count_up_to(5)], [n]]


def _initialized_value(tf: Any) -> list[list[Any]]:
    v = tf.get_variable("v", initializer=values(3))
    w = tf.Variable(v.initialized_value() * 2.0, name="w")
    return [[tf.is_variable_initialized(v), v, w]]


def _partitioned(tf: Any) -> list[list[Any]]:
    v = tf.get_variable(
        "v", [5, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(3)
    )
    whole = tf.convert_to_tensor(v)
    return [[whole], [part.assign(part * i) for i, part in enumerate(v)], [whole]]


def _reuse(tf: Any) -> list[list[Any]]:
    with tf.variable_scope("inner", reuse=tf.AUTO_REUSE):
        first = tf.get_variable("w", initializer=values(2))
        second = tf.get_variable("w", initializer=values(2, seed=1))
    return [[first.assign_add([1.0, 1.0])], [second]]


def _regression(tf: Any) -> list[list[Any]]:
    """Logistic regression, written out: the gradients and the updates are the program's own."""
    x, true = values(20, 3), np.array([[1.0], [-2.0], [0.5]], np.float32)
    y = (x @ true > 0).astype(np.float32)
    w, b = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer()), tf.Variable([0.0])
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    grads = tf.gradients(loss, [w, b])
    train = tf.group(*[v.assign_sub(0.5 * g) for v, g in zip((w, b), grads, strict=True)])
    return [[loss], *[[train]] * 10, [loss, w, b]]


PROGRAMS = {
    "assignments_ref": _assignments(False),
    "assignments_resource": _assignments(True),
    "slices": Program(_slices),
    "control_edges": Program(_ordered_by_control_edges),
    "group_and_tuple": Program(_group_and_tuple),
    "count_up_to": Program(_count_up_to),
    "initialized_value": Program(_initialized_value),
    "partitioned": Program(_partitioned),
    "reuse": Program(_reuse),
    "regression": Program(_regression),
}
