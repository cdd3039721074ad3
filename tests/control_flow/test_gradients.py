"""Gradients of conditionals and loops, against finite differences."""

import numpy as np
import pytest

import runnel as tf
from tests.finite_differences import assert_derivatives


def loop(n, step, start):
    return tf.while_loop(lambda i, _: i < n, lambda i, s: (i + 1, step(i, s)), [0, start])[1]


PROGRAMS = {
    "cond": lambda x: tf.cond(x[0] > 0, lambda: x * x, lambda: tf.sin(x)),
    "cond of an outer tensor as it is": lambda x: tf.cond(x[0] > 0, lambda: x, lambda: 2 * x) * x,
    "nested conds": lambda x: tf.cond(
        x[0] > 0,
        lambda: x * tf.cond(x[1] > 0, lambda: x * x, lambda: tf.exp(x)),
        lambda: tf.sin(x) * 3,
    ),
    "a constant branch": lambda x: (
        x * tf.cond(x[0] > 0, lambda: tf.constant(3.0, x.dtype), lambda: tf.reduce_sum(x))
    ),
    "case": lambda x: tf.case(
        [(x[0] > 1, lambda: x), (x[0] > 0, lambda: x * x)], default=lambda: x**3
    ),
    "while": lambda x: loop(4, lambda i, s: tf.sin(s * x) + s, x),
    "while that does not use its variable": lambda x: loop(3, lambda i, s: tf.cos(x), x),
    "while without iterations": lambda x: loop(0, lambda i, s: s * s, x * 3),
    "cond in while": lambda x: loop(
        4,
        lambda i, s: tf.sin(s) * tf.cond(tf.equal(i % 2, 0), lambda: s * x, lambda: tf.exp(-s)),
        x,
    ),
    "nested conds in while": lambda x: loop(
        5,
        lambda i, s: tf.cond(
            i < 3,
            lambda: tf.cond(tf.equal(i, 1), lambda: s * x, lambda: tf.sin(s * x)),
            lambda: s * tf.cos(s),
        ),
        x,
    ),
    "while in cond": lambda x: tf.cond(
        x[0] > 0, lambda: loop(3, lambda i, s: s * x, x), lambda: -x * x
    ),
    "while in while": lambda x: loop(
        3, lambda i, s: tf.sin(s) + loop(i + 1, lambda j, t: tf.cos(t * x) + s, s * x), x
    ),
    "a while in a cond in a while": lambda x: loop(
        4,
        lambda i, s: tf.cond(
            tf.equal(i % 2, 1), lambda: loop(i, lambda j, t: tf.sin(t * s), x * s), lambda: s + x
        ),
        x,
    ),
    "variables that feed one another": lambda x: tf.while_loop(
        lambda i, a, b: i < 4, lambda i, a, b: (i + 1, b * x, tf.sin(a)), [0, x, x * 2]
    )[2],
    "data-dependent length": lambda x: tf.while_loop(
        lambda s: tf.reduce_sum(s * s) < 50.0, lambda s: s * 1.7 + x * s, [tf.abs(x) + 0.2]
    ),
    "a shape that grows": lambda x: tf.reduce_sum(
        tf.while_loop(
            lambda i, s: i < 3,
            lambda i, s: (i + 1, tf.concat([s, tf.sin(s) * x[0]], 0)),
            [0, x],
            shape_invariants=[(), (None,)],
        )[1]
    ),
    "gather in while": lambda x: loop(3, lambda i, s: s + tf.gather(x, [i % 2, 0]) * s, x),
}
POINTS = {"positive": [0.6, 1.2], "mixed": [0.5, -0.8], "negative": [-0.7, 0.3]}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients(program, point):
    assert_derivatives(PROGRAMS[program], POINTS[point], order=1, delta=1e-6, tolerance=1e-5)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("program", ["cond", "nested conds", "a constant branch", "case"])
def test_second_derivatives_of_conditionals(program, point):
    assert_derivatives(PROGRAMS[program], POINTS[point], order=2)


@pytest.mark.parametrize("use_resource", [False, True])
def test_training_through_a_loop(use_resource):
    with tf.Graph().as_default():
        v = tf.Variable(0.5, use_resource=use_resource)
        y = loop(3, lambda i, s: s * v + 1.0, tf.constant(1.0))
        (grad,) = tf.gradients(y, v)
        step = v.assign_sub(0.1 * grad)
        with tf.Session() as sess:
            sess.run(v.initializer)
            w = 0.5
            assert sess.run(grad) == pytest.approx(3 * w**2 + 2 * w + 1)
            sess.run(step)
            assert sess.run(v) == pytest.approx(w - 0.1 * (3 * w**2 + 2 * w + 1))


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("taken", [True, False])
def test_sparse_gradients_through_a_branch(use_resource, taken):
    with tf.Graph().as_default():
        table = tf.Variable(np.ones([4, 2], np.float32), use_resource=use_resource)
        p = tf.placeholder(tf.bool, [])
        y = tf.cond(p, lambda: tf.gather(table, [1, 1, 3]), lambda: tf.zeros([3, 2]))
        (grad,) = tf.gradients(y, table)
        with tf.Session() as sess:
            sess.run(table.initializer)
            found = sess.run(tf.convert_to_tensor(grad), {p: taken})
        expected = np.zeros([4, 2]) + (np.array([[0], [2], [0], [1]]) if taken else 0)
        np.testing.assert_array_equal(found, expected)


def test_forward_steps_keep_no_history():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        y = loop(3, lambda i, s: s * x, x)
        tf.gradients(y, x)
        metadata = tf.RunMetadata()
        with tf.Session() as sess:
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            assert sess.run(y, {x: 2.0}, options=options, run_metadata=metadata) == 16.0
        names = [stats.node_name for stats in metadata.step_stats.dev_stats[0].node_stats]
        assert not [name for name in names if "Stack" in name]


def test_a_loop_that_says_so_is_not_differentiated():
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        _, y = tf.while_loop(
            lambda i, _: i < 3, lambda i, s: (i + 1, s * x), [0, x], back_prop=False
        )
        assert tf.gradients(y, x) == [None]


def test_a_gradient_inside_a_loop():
    """Newton's method: the derivative is taken in each iteration."""
    with tf.Graph().as_default():
        a = tf.constant(2.0, tf.float64)

        def body(i, x):
            error = x * x - a
            (slope,) = tf.gradients(error, x)
            return i + 1, x - error / slope

        _, root = tf.while_loop(lambda i, _: i < 6, body, [0, tf.constant(1.0, tf.float64)])
        with tf.Session() as sess:
            assert sess.run(root) == pytest.approx(np.sqrt(2.0), abs=1e-12)


def test_the_gradient_of_a_branch_is_not_computed_when_it_is_not_taken():
    ran = []

    def noted(x):
        return tf.py_func(lambda g: ran.append(1) or g, [x], x.dtype)

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, [])

        @tf.custom_gradient
        def watched(x):
            return tf.identity(x), noted

        y = tf.cond(x > 0, lambda: watched(x), lambda: x * 2)
        grad = tf.gradients(y, x)[0]
        with tf.Session() as sess:
            assert sess.run(grad, {x: -1.0}) == 2.0
            assert ran == []
            assert sess.run(grad, {x: 1.0}) == 1.0
            assert ran == [1]


def test_what_only_decides_has_no_gradient():
    with tf.Graph().as_default():
        x, y = tf.constant(1.0), tf.constant(2.0)
        result = loop(3, lambda i, s: tf.cond(y > 0, lambda: s * x, lambda: s), x)
        grads = tf.gradients(result, [x, y])
        assert grads[0] is not None
        assert grads[1] is None
