"""``tf.contrib.framework``: default arguments of functions, and the variables of models."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import runnel as tf

framework = tf.contrib.framework


@framework.add_arg_scope
def scaled(value, factor=1, offset=0):
    return value * factor + offset


def test_an_inner_scope_wins_over_an_outer_one_and_a_call_over_both():
    with framework.arg_scope([scaled], factor=2, offset=10):
        assert scaled(1) == 12
        with framework.arg_scope([scaled], factor=3) as scope:
            assert scaled(1) == 13
            assert scaled(1, factor=5) == 15
            assert scaled(1, 7) == 17, "by position"
        assert scaled(1) == 12
    assert scaled(1) == 1
    with framework.arg_scope(scope):
        assert scaled(1) == 13


def test_a_scope_is_closed_when_its_block_fails():
    with pytest.raises(KeyError), framework.arg_scope([scaled], factor=2):
        raise KeyError
    assert scaled(1) == 1


def test_a_scope_is_of_its_thread():
    found = []
    with framework.arg_scope([scaled], factor=2):
        thread = threading.Thread(target=lambda: found.append(scaled(1)))
        thread.start()
        thread.join()
    assert found == [1]


def test_functions_that_are_not_decorated_are_named():
    with (
        pytest.raises(ValueError, match="relu is not decorated with @add_arg_scope"),
        framework.arg_scope([tf.nn.relu], name="x"),
    ):
        pass


def _two_layers():
    with tf.variable_scope("a"):
        w = framework.model_variable("w", [2], initializer=tf.ones_initializer())
        b = framework.variable("b", [2], initializer=tf.zeros_initializer(), trainable=False)
    with tf.variable_scope("c"):
        other = framework.model_variable("w", [3], initializer=tf.zeros_initializer())
    return w, b, other


def test_variables_are_found_by_scope_and_name():
    w, b, other = _two_layers()
    assert framework.get_variables("a") == [w, b]
    assert framework.get_variables_by_name("w") == [w, other]
    assert framework.get_variables_by_suffix("w", "c") == [other]
    assert framework.get_model_variables() == [w, other]
    assert framework.get_trainable_variables("a") == [w]
    assert framework.get_variables_to_restore(exclude=["c"]) == [w, b]
    assert framework.get_variables_to_restore(include=["c"]) == [other]
    assert framework.get_unique_variable("a/w") is w
    assert framework.filter_variables(tf.global_variables(), ["w"], ["^c"]) == [w]
    with pytest.raises(ValueError, match="no single variable 'w'"):
        framework.get_unique_variable("w")


def test_variables_get_their_values_from_a_checkpoint_or_from_arrays(tmp_path):
    w, b, other = _two_layers()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run([w.assign([4, 5]), b.assign([6, 7])])
        path = tf.train.Saver([w, b]).save(sess, str(tmp_path / "model"))
        sess.run(tf.global_variables_initializer())

        update, feed = framework.assign_from_checkpoint(path, {"a/b": w})
        sess.run(update, feed)
        np.testing.assert_array_equal(sess.run(w), [6, 7])

        with pytest.raises(ValueError, match="has no variable c/w"):
            framework.assign_from_checkpoint(path, [other])
        with pytest.raises(ValueError, match=r"c/w has shape \(3,\)"):
            framework.assign_from_checkpoint(path, {"a/w": other})

        framework.assign_from_checkpoint_fn(path, [w, b, other], ignore_missing_vars=True)(sess)
        np.testing.assert_array_equal(sess.run(w), [4, 5])

        framework.assign_from_values_fn({"c/w": [1, 2, 3]})(sess)
        np.testing.assert_array_equal(sess.run(other), [1, 2, 3])


def test_variables_go_to_the_device_that_a_scope_names():
    with framework.arg_scope([framework.model_variable], device="/cpu:0"):
        w = framework.model_variable("w", [2])
    chooser = framework.VariableDeviceChooser(num_tasks=2)
    assert w.device == "/device:CPU:0"
    assert [chooser(w.op) for _ in range(3)] == [
        "/job:ps/task:0/device:CPU:0",
        "/job:ps/task:1/device:CPU:0",
        "/job:ps/task:0/device:CPU:0",
    ]


def test_variables_without_a_device_of_their_own_are_where_the_scopes_around_them_say():
    """TensorFlow: only ``tf.device(None)`` ends the scopes outside; no device is not None."""
    chooser = framework.VariableDeviceChooser(num_tasks=2)
    with tf.device(chooser):
        made = [
            framework.variable("a", [2]),
            framework.model_variable("b", [2]),
            framework.local_variable(0.0, name="c"),
            tf.get_variable("d", [2]),
        ]
    assert [variable.device[:12] for variable in made] == ["/job:ps/task"] * 4
    with tf.device("/job:ps"):
        assert framework.variable("e", [2], device="/task:3").device == "/job:ps/task:3"
    with tf.device("/job:worker/task:1"), framework.arg_scope([framework.variable], device=None):
        assert framework.variable("f", [2]).device == "/job:worker/task:1"


def test_the_key_of_a_function_in_scopes_is_where_programs_look_for_it():
    with framework.arg_scope([scaled], factor=2) as scope:
        assert scope[scaled._key_op]["factor"] == 2
    assert framework.arg_scope_func_key(scaled) == scaled._key_op


def test_scopes_of_names():
    framework = tf.contrib.framework
    assert framework.get_name_scope() == ""
    with tf.name_scope("outer"), tf.name_scope("inner"):
        assert framework.get_name_scope() == "outer/inner"
    # What TensorFlow 1.15 gives.
    for name, stripped in [
        ("a/b/c:0", "b/c:0"),
        ("^a/b", "^b"),
        ("loc:@a/b", "loc:@b"),
        ("ab/c", "ab/c"),
    ]:
        assert framework.strip_name_scope(name, "a") == stripped
    assert framework.strip_name_scope("a/b", None) == "a/b"
    for name, longer in [("b:0", "a/b:0"), ("^b", "^a/b"), ("loc:@b", "loc:@a/b")]:
        assert framework.prepend_name_scope(name, "a") == longer
