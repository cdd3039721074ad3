"""Derivatives of derivatives of loops, and of branches in them, against finite differences."""

import numpy as np
import pytest

import runnel as tf
from tests.control_flow.test_gradients import PROGRAMS
from tests.control_flow.test_tensor_array import GRADIENTS
from tests.finite_differences import assert_derivatives


def loop(n, step, start):
    return tf.while_loop(lambda i, _: i < n, lambda i, s: (i + 1, step(i, s)), [0, start])[1]


# Those with a second derivative that varies; the others are differentiated in their file.
NESTS = {
    "a while in a cond in a while, taken first": lambda x: loop(
        2,
        lambda i, s: tf.cond(tf.equal(i, 0), lambda: loop(2, lambda j, t: t * s, x), lambda: s * s),
        x,
    ),
    "a while in a cond in a while, taken last": lambda x: loop(
        2,
        lambda i, s: tf.cond(tf.equal(i, 1), lambda: loop(2, lambda j, t: t * s, x), lambda: s * s),
        x,
    ),
    "a cond in a while in a while": lambda x: loop(
        2,
        lambda i, s: loop(
            2, lambda j, t: tf.cond(tf.equal(i, j), lambda: t * s, lambda: tf.sin(t * x)), s
        ),
        x,
    ),
    "three loops": lambda x: loop(
        2, lambda i, a: loop(2, lambda j, b: loop(2, lambda k, c: tf.sin(c * a), b * x), a), x
    ),
}


@pytest.mark.parametrize(
    "program",
    ["while", "cond in while", "nested conds in while", "while in cond", "while in while",
     "variables that feed one another", "data-dependent length", "a shape that grows",
     "gather in while", "while that does not use its variable"],
)  # fmt: skip
def test_loops(program):
    assert_derivatives(PROGRAMS[program], [0.6, 1.2], delta=2e-6, tolerance=2e-5)


@pytest.mark.parametrize("program", NESTS)
def test_nests(program):
    assert_derivatives(NESTS[program], [0.6, 1.1], delta=2e-6, tolerance=1e-4)


@pytest.mark.parametrize("program", [p for p in GRADIENTS if p != "an element read by several"])
def test_arrays(program):
    x = [[0.5, 1.0], [-0.3, 0.2], [0.8, -0.6]]
    assert_derivatives(GRADIENTS[program], x, delta=2e-6, tolerance=2e-5)


@pytest.mark.parametrize("program", ["while", "cond in while", "while in while"])
def test_third_derivatives(program):
    assert_derivatives(PROGRAMS[program], [0.4, 0.7], order=3, delta=2e-6, tolerance=1e-3)


def test_the_polynomial_of_a_loop():
    """x to the power of n: every derivative is known."""
    with tf.Graph().as_default():
        x, n = tf.placeholder(tf.float64, []), tf.placeholder(tf.int32, [])
        y = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * x), [0, x])[1]
        derivatives = [y]
        for _ in range(4):
            derivatives += tf.gradients(derivatives[-1], x)
        with tf.Session() as sess:
            for power in (1, 3, 6):
                found = sess.run(derivatives, {x: 1.3, n: power - 1})
                expected = np.polynomial.Polynomial([0] * power + [1])
                for k, value in enumerate(found):
                    assert value == pytest.approx(expected.deriv(k)(1.3) if k else expected(1.3))


def test_hessians():
    with tf.Graph().as_default():
        x = tf.constant([0.3, -0.7, 1.1], tf.float64)
        (through_a_loop,) = tf.hessians(tf.reduce_prod(tf.map_fn(lambda e: e * e, x)), x)
        (direct,) = tf.hessians(tf.reduce_prod(x * x), x)
        with tf.Session() as sess:
            found, expected = sess.run([through_a_loop, direct])
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("shape", [[2, 2], [None, None]])
def test_hessians_by_a_loop(shape):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, shape)
        (found,) = tf.hessians(tf.reduce_sum(x) ** 3, x)
        with tf.Session() as sess:
            value = sess.run(found, {x: np.array([[0.1, 0.2], [0.3, 0.4]])})
        np.testing.assert_allclose(value, np.full([2, 2, 2, 2], 6.0))


def test_a_gradient_taken_inside_a_loop_is_differentiated():
    """Newton's method: the result's derivative is that of the root."""
    with tf.Graph().as_default():
        a = tf.placeholder(tf.float64, [])

        def body(i, x):
            cubed = loop(2, lambda j, t: t * x, x)  # the gradient inside is that of a loop
            error = cubed - a
            (slope,) = tf.gradients(error, x)
            return i + 1, x - error / slope

        _, root = tf.while_loop(lambda i, _: i < 8, body, [0, tf.constant(1.0, tf.float64)])
        (derivative,) = tf.gradients(root, a)
        with tf.Session() as sess:
            found = sess.run([root, derivative], {a: 2.0})
        np.testing.assert_allclose(found, [2 ** (1 / 3), 2 ** (-2 / 3) / 3], rtol=1e-9)
