"""Stabilising rewrites in loops and conditionals: as good as outside, and no more alive."""

import numpy as np
import pytest

import runnel as tf
from runnel.ops.control_flow import merge, switch

LOGITS = np.array([[1000.0, 0.0]], np.float32)
EXPECTED = [[0.0, -1000.0]]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(fetches, feed):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches, feed)


def log_softmax(x):
    return tf.log(tf.nn.softmax(x))


def test_in_a_conditional_a_loop_and_around_them():
    x, p = tf.placeholder(tf.float32, [1, 2]), tf.placeholder(tf.bool, [])
    branch = tf.cond(p, lambda: log_softmax(x), lambda: tf.log(1.0 - tf.sigmoid(x)))
    _, loop = tf.while_loop(
        lambda i, _: i < 2, lambda i, _: (i + 1, log_softmax(x)), [tf.constant(0), x]
    )
    outside = log_softmax(x)
    for found in run([branch, loop, outside], {x: LOGITS, p: True}):
        np.testing.assert_allclose(found, EXPECTED)
    found = run(branch, {x: [[100.0, 0.0]], p: False})
    np.testing.assert_allclose(found, [[-100.0, -np.log(2)]], rtol=1e-6)


def test_in_a_loop_that_waits_for_a_queue():
    queue = tf.FIFOQueue(4, tf.float32, [[1, 2]])
    filled = queue.enqueue_many([np.stack([LOGITS, LOGITS])])
    _, total = tf.while_loop(
        lambda i, _: i < 2,
        lambda i, total: (i + 1, total + log_softmax(queue.dequeue())),
        [tf.constant(0), tf.zeros([1, 2])],
    )
    with tf.Session() as sess:
        sess.run(filled)
        np.testing.assert_allclose(sess.run(total), 2 * np.array(EXPECTED))


def divide_and_multiply(x, y):
    return x / y * y


ON_A_BRANCH = {
    "by a constant": (lambda x, one, wait: tf.log(one - tf.sigmoid(x)), 0.0, -np.log(2)),
    "by what it waits for": (lambda x, one, wait: tf.log(wait(lambda: tf.exp(x))), 1000.0, 1000.0),
    "by a divisor": (lambda x, one, wait: divide_and_multiply(x, one * 0.0), 3.0, 3.0),
}


@pytest.mark.parametrize("case", ON_A_BRANCH)
def test_what_is_on_a_branch_stays_on_it(case):
    """... although the value from which it is computed after the rewrite is on none."""
    build, value, expected = ON_A_BRANCH[case]
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    when_false, when_true = switch(tf.constant(1.0), p)
    pivot = tf.identity(when_true)
    with tf.control_dependencies([pivot]):
        one = tf.constant(1.0)

    def wait(make):
        with tf.control_dependencies([pivot]):
            return make()

    y = build(x, one, wait)
    # Merge takes the only live input.
    merged, index = merge([when_false * 7.0, y])
    assert run([merged, index], {x: value, p: False}) == [7.0, 0]
    found, at = run([merged, index], {x: value, p: True})
    assert at == 1
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="was not taken"):
        run([y, merged], {x: value, p: False})


def test_a_variable_is_read_where_it_was():
    """log(exp(v)): v is read by exp, before the update for which the logarithm waits."""
    v = tf.Variable(2.0)
    p = tf.placeholder(tf.bool, [])
    power = tf.exp(v)
    with tf.control_dependencies([power]):
        update = tf.assign(v, 5.0)
    with tf.control_dependencies([update]):
        y = tf.log(power)
    branch = tf.cond(p, lambda: y + 1.0, lambda: y)
    np.testing.assert_allclose(run([y, branch], {p: True}), [2.0, 3.0], rtol=1e-6)


def test_an_effect_for_which_a_part_of_the_expression_waits_comes_first():
    v = tf.Variable(1.0)
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    queue = tf.FIFOQueue(1, tf.float32, [[]])
    filled = queue.enqueue(x)
    update = tf.assign_add(v, queue.dequeue())
    with tf.control_dependencies([update]):
        power = tf.exp(x)
    sums = tf.log(power) + v
    branch = tf.cond(p, lambda: sums * 2.0, lambda: sums)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(filled, {x: 3.0})
        np.testing.assert_allclose(sess.run(branch, {x: 3.0, p: True}), 14.0, rtol=1e-6)
