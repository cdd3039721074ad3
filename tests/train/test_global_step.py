"""The global step: made once, found again, checked."""

from __future__ import annotations

import pytest

import runnel as tf


def test_it_is_made_once_and_found_again():
    assert tf.train.get_global_step() is None
    step = tf.train.create_global_step()
    assert step.op.name == "global_step" and step.dtype.base_dtype == tf.int64
    assert not step.trainable and step.shape == []
    assert tf.train.get_global_step() is step
    assert tf.train.get_or_create_global_step() is step
    assert tf.get_collection(tf.GraphKeys.GLOBAL_STEP) == [step]
    assert tf.global_variables() == [step]
    with pytest.raises(ValueError, match='"global_step" already exists'):
        tf.train.create_global_step()


def test_it_lies_outside_name_scopes():
    with tf.name_scope("scope"):
        assert tf.train.get_or_create_global_step().op.name == "global_step"


def test_it_belongs_to_a_graph():
    other = tf.Graph()
    step = tf.train.create_global_step(other)
    assert step.graph is other
    assert tf.train.get_global_step() is None and tf.train.get_global_step(other) is step


def test_it_is_found_by_its_name():
    step = tf.Variable(3, name="global_step", trainable=False)
    assert tf.train.get_global_step().name == step.name
    with tf.Session() as sess:
        sess.run(step.initializer)
        assert tf.train.global_step(sess, step) == 3
        assert tf.train.global_step(sess, tf.train.get_global_step()) == 3


def test_the_step_that_is_found_by_name_is_counted():
    tf.Variable(3, name="global_step", trainable=False)
    v = tf.Variable(1.0)
    step = tf.train.get_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(v * v, global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        assert tf.train.global_step(sess, step) == 4


@pytest.mark.parametrize(
    ("value", "message"), [(1.5, "does not have integer type"), ([1, 2], "is not scalar")]
)
def test_it_is_an_integer_scalar(value, message):
    tf.Variable(value, name="global_step")
    with pytest.raises(TypeError, match=message):
        tf.train.get_global_step()


def test_several_are_none():
    for _ in range(2):
        tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, tf.Variable(0))
    assert tf.train.get_global_step() is None
