"""Python functions over tensors that have values."""

import numpy as np
import pytest

import runnel as tf


def test_a_function_sees_values_and_is_differentiated():
    x = tf.placeholder(tf.float32, [])

    def decided(value):
        return value**3 if value.numpy() > 0 else tf.exp(value)

    y = tf.py_function(decided, [x], tf.float32)
    slope = tf.gradients(2.0 * y, x)[0]
    with tf.Session() as sess:
        assert sess.run([y, slope], {x: 2.0}) == [8.0, 24.0]
        np.testing.assert_allclose(sess.run([y, slope], {x: -1.0}), [np.exp(-1), 2 * np.exp(-1)])


def test_several_results_of_several_types():
    x, n = tf.constant([1.0, 2.0]), tf.constant(3)

    def both(value, count):
        assert count.numpy() == 3
        return tf.reduce_sum(value) * tf.cast(count, tf.float32), count + 1

    total, more = tf.py_function(both, [x, n], [tf.float32, tf.int32])
    slopes = tf.gradients(total, [x, n])
    assert slopes[1] is None
    with tf.Session() as sess:
        assert sess.run([total, more]) == [9.0, 4]
        np.testing.assert_array_equal(sess.run(slopes[0]), [3.0, 3.0])


def test_a_function_may_return_numpy_arrays_strings_or_nothing():
    seen = []
    upper = tf.py_function(lambda s: s.numpy().upper(), [tf.constant("abc")], tf.string)
    note = tf.py_function(lambda s: seen.append(s.numpy()), [tf.constant(5)], [])
    with tf.Session() as sess:
        assert sess.run(upper) == b"ABC"
        sess.run(note)
    assert seen == [5]


def test_an_error_of_the_function_names_the_operation():
    def fails(value):
        raise ValueError("no such luck")

    y = tf.py_function(fails, [tf.constant(1.0)], tf.float32, name="unlucky")
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="no such luck") as e,
    ):
        sess.run(y)
    assert "unlucky" in str(e.value)
