"""Initialising variables, and finding those that are not."""

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session


def test_collections_of_variables():
    a = tf.Variable(1.0, name="a")
    b = tf.Variable(1.0, name="s/b", trainable=False)
    c = tf.Variable(1.0, name="c", collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
    d = tf.Variable(1.0, collections=[tf.GraphKeys.MODEL_VARIABLES])
    tf.add_to_collection(tf.GraphKeys.MOVING_AVERAGE_VARIABLES, a)
    assert tf.global_variables() == tf.all_variables() == [a, b]
    assert tf.global_variables("s") == [b]
    assert tf.trainable_variables() == [a, d]
    assert tf.local_variables() == [c]
    assert tf.model_variables() == [d]
    assert tf.moving_average_variables() == [a]


@pytest.mark.parametrize("tier", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
def test_initialisers_of_groups(tier):
    a = tf.Variable(1.0)
    b = tf.Variable(2.0)
    c = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    with session(tier) as sess:
        assert sess.run(tf.variables_initializer([a])) is None
        assert sess.run(a) == 1.0
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(b)
        sess.run(tf.global_variables_initializer())
        assert sess.run(b) == 2.0
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(c)
        sess.run(tf.local_variables_initializer())
        assert sess.run(c) == 3.0
        sess.run([a.assign(9.0), b.assign(9.0)])
        sess.run(tf.initialize_all_variables())
        assert sess.run([a, b]) == [1.0, 2.0]
        sess.run([tf.initialize_variables([b]), tf.initialize_local_variables()])


def test_an_empty_list_is_initialised_by_doing_nothing():
    assert tf.variables_initializer([]).type == "NoOp"
    assert tf.global_variables_initializer().type == "NoOp"


def test_reporting_what_is_not_initialised():
    a = tf.Variable(1.0, name="a")
    b = tf.Variable(1.0, name="b", use_resource=True)
    report = tf.report_uninitialized_variables()
    of_a = tf.report_uninitialized_variables([a])
    ready = [tf.is_variable_initialized(a), tf.is_variable_initialized(b), b.is_initialized()]
    with tf.Session() as sess:
        assert sess.run(report).tolist() == [b"a", b"b"]
        assert sess.run(ready) == [False] * 3
        sess.run(a.initializer)
        assert sess.run(report).tolist() == [b"b"]
        assert sess.run(of_a).tolist() == []
        sess.run(b.initializer)
        assert sess.run(report).shape == (0,)
        assert sess.run(ready) == [True] * 3


def test_a_graph_without_variables_has_nothing_to_report():
    assert tf.assert_variables_initialized() is None
    with tf.Session() as sess:
        assert sess.run(tf.report_uninitialized_variables()).tolist() == []


@pytest.mark.parametrize("tier", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
def test_asserting_that_all_are_initialised(tier):
    a, b = tf.Variable(np.ones((2, 2)), name="a"), tf.Variable(1.0, name="b", use_resource=True)
    ready = tf.assert_variables_initialized()
    with session(tier) as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="a"):
            sess.run(ready)
        sess.run(a.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="b"):
            sess.run(ready)
        sess.run(b.initializer)
        sess.run(ready)
