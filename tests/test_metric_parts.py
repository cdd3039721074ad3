"""The parts of which programs make metrics of their own, from inside TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest
from runnel.python.ops import confusion_matrix, metrics_impl

import runnel as tf


def test_a_metric_of_a_programs_own_begins_anew_with_the_local_variables():
    with tf.variable_scope("score"):
        total = metrics_impl.metric_variable([2], tf.float64, name="total")
    assert total.name == "score/total:0" and total.dtype.base_dtype == tf.float64
    assert total in tf.local_variables() and total not in tf.trainable_variables()
    assert tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) == [total]
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        sess.run(tf.assign_add(total, [1, 2]))
        np.testing.assert_array_equal(sess.run(total), [1, 2])
        sess.run(tf.local_variables_initializer())
        np.testing.assert_array_equal(sess.run(total), [0, 0])


@pytest.mark.parametrize(
    ("labels", "predictions", "difference", "expected"),
    [
        ([3, 1], [3], 0, ([3], [3])),
        ([3], [3, 1], 0, ([3], [3])),
        ([3], [3, 4], 0, ([3], [3, 4])),
        ([3, 1], [3, 4], 1, ([3], [3, 4])),
        ([3], [3, 4, 1], 1, ([3], [3, 4])),
        ([None, 1], [None], 0, ([None], [None])),
    ],
)
def test_the_one_with_a_rank_too_many_loses_it(labels, predictions, difference, expected):
    found = confusion_matrix.remove_squeezable_dimensions(
        tf.placeholder(tf.float32, labels), tf.placeholder(tf.float32, predictions), difference
    )
    assert tuple(tensor.shape.as_list() for tensor in found) == expected


def test_a_quotient_is_zero_where_the_denominator_is():
    with tf.Session() as sess:
        pairs = [(1.0, 4.0), (3.0, 0.0)]
        found = [metrics_impl._safe_scalar_div(*map(tf.constant, pair), "q") for pair in pairs]
        assert sess.run(found) == [0.25, 0.0]
