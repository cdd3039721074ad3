"""Tensors used outside the branch or the loop in which they are: the error says what to do."""

import pytest

import runnel as tf


def leak_from_branch(pred, x):
    """A tensor inside a branch, and the result of the conditional."""
    leaked = {}

    def true_fn():
        leaked["tensor"] = tf.multiply(x, 2.0, name="inside")
        return leaked["tensor"] + 1.0

    return tf.cond(pred, true_fn, lambda: x), leaked["tensor"]


def leak_from_loop(x):
    leaked = {}

    def body(i, v):
        leaked["tensor"] = tf.multiply(v, 2.0, name="inside")
        return i + 1, leaked["tensor"]

    tf.while_loop(lambda i, _: i < 3, body, [0, x])
    return leaked["tensor"]


def test_of_a_branch():
    x, p = tf.constant(2.0), tf.placeholder(tf.bool, [])
    result, inside = leak_from_branch(p, x)
    outside = inside + result
    with tf.Session() as sess:
        assert sess.run(outside, {p: True}) == 9.0  # as in TensorFlow
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"(?s)uses 'cond/inside'.*test_used_outside.py.*return it from both.*tf.cond",
        ):
            sess.run(outside, {p: False})
        with pytest.raises(ValueError, match=r"(?s)not fetchable.*return it from both"):
            sess.run(inside, {p: True})


def test_of_a_loop():
    inside = leak_from_loop(tf.constant(2.0))
    with pytest.raises(ValueError, match=r"(?s)'while/inside:0' as an input.*loop variable"):
        tf.negative(inside)
    with tf.Session() as sess, pytest.raises(ValueError, match="not fetchable.*loop variable"):
        sess.run(inside)


def test_in_another_loop():
    x = tf.constant(2.0)
    inside = leak_from_loop(x)
    with pytest.raises(ValueError, match=r"(?s)input of 'while_1/add'.*inside the loop 'while/"):
        tf.while_loop(lambda v: v < 3.0, lambda v: v + inside, [x])
    with pytest.raises(ValueError, match=r"(?s)in the loop 'while_2/.*inside the loop 'while/"):
        tf.while_loop(lambda v: tf.cond(v < 3.0, lambda: inside, lambda: v) > 0, lambda v: v, [x])


def test_the_graph_can_be_built_on_after_the_mistake():
    x = tf.constant(2.0)
    inside = leak_from_loop(x)
    with pytest.raises(ValueError, match="inside the loop"):
        tf.while_loop(lambda v: v < 3.0, lambda v: v + inside, [x])
    with tf.Session() as sess:
        assert sess.run(tf.while_loop(lambda v: v < 9.0, lambda v: v + v, [x])) == 16.0
