"""Branches that are left out: the step gives what it gives with them."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.passes.program.checker import check_program
from runnel.passes.program.prune import prune
from runnel.passes.structure.settled_branches import settle_branches

X = np.random.RandomState(0).uniform(-1, 1, (3, 4)).astype(np.float32)


def chosen(phase, x):
    return tf.cond(phase, lambda: x * 2.0, lambda: tf.exp(x))


def nested(phase, x):
    other = tf.reduce_sum(x) > 0.0
    inner = tf.cond(phase, lambda: tf.cond(other, lambda: x, lambda: -x), lambda: x + 1.0)
    return tf.cond(
        tf.identity(phase), lambda: inner * x, lambda: tf.cond(phase, lambda: x, lambda: inner)
    )


def looping(phase, x):
    def repeated():
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]

    return tf.cond(phase, repeated, lambda: x - 1.0) * 3.0


def around(phase, x):
    def body(i, y):
        return i + 1, tf.cond(phase, lambda: y + x, lambda: y * x)

    return tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]


def negated(phase, x):
    return tf.cond(tf.logical_not(phase), lambda: x, lambda: x * x)


def assigning(phase, x):
    v = tf.Variable(np.zeros((3, 4), np.float32), name="v", use_resource=True)
    moved = tf.cond(phase, lambda: v.assign_add(x).op, lambda: tf.no_op())
    with tf.control_dependencies([moved]):
        return v.read_value() + x


def drawing(phase, x):
    dropped = tf.cond(phase, lambda: tf.nn.dropout(x, rate=0.5, seed=3), lambda: tf.identity(x))
    return tf.where(tf.equal(dropped, 0.0), x, dropped / (1.0 + tf.cast(phase, tf.float32)))


PROGRAMS = [chosen, nested, looping, around, negated, assigning, drawing]


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_the_step_gives_the_same(make, value):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 4])
        phase = tf.placeholder_with_default(False, [])
        y = make(phase, x)
        fetches = [y, tf.gradients(y, x)[0]]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            expected = session.run(fetches, {x: X, phase: value})
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            step = session._callable_where(fetches, [x, phase], {phase: value})
            for found, wanted in zip(step(X, value), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-6)
            if not value:  # it is what the placeholder is by itself
                alone = session._callable_where(y, [x], {phase: value})
                session.run(tf.global_variables_initializer())
                np.testing.assert_allclose(alone(X), expected[0], rtol=1e-6)


@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_what_is_left_is_a_program_without_the_branch(make, value):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 4])
        phase = tf.placeholder_with_default(False, [])
        y = make(phase, x)
        fetches = [y, tf.gradients(y, x)[0]]
        program = prune(fetches, [], [x, phase])
        settled = settle_branches(program, {phase: value})
        check_program(settled, "settle_branches")
        left = [node.op_def.name for node in settled.nodes]
        before = [node.op_def.name for node in program.nodes]
        inside_of_others = make in (nested, around, negated, looping)
        assert inside_of_others or "Merge" not in left
        assert len(left) < len(before) or make in (around, negated)
