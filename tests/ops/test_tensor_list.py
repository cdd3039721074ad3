"""Lists of tensors as values, as functions of TensorFlow 2 use them."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.ops import tensor_list

ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)
ANY = np.int32(-1)


def run(value, feeds=None):
    with tf.Session() as sess:
        return sess.run(value, feeds)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def rows():
    return tensor_list.from_tensor_op(tf.constant(ROWS), [2], element_dtype=tf.float32)


def stacked(made):
    return tensor_list.stack_op(made, ANY, element_dtype=tf.float32)


def test_a_tensor_is_taken_apart_and_put_together():
    np.testing.assert_array_equal(run(stacked(rows())), ROWS)
    assert run(tensor_list.length_op(rows())) == 3


def test_setting_an_element_leaves_the_list_as_it_was():
    before = rows()
    after = tensor_list.set_item_op(before, 1, [9.0, 9.0], element_dtype=tf.float32)
    one, other = run([stacked(before), stacked(after)])
    np.testing.assert_array_equal(one, ROWS)
    np.testing.assert_array_equal(other, [ROWS[0], [9, 9], ROWS[2]])


def test_elements_that_were_never_set_are_zeros():
    made = tensor_list.reserve_op([2], 2, element_dtype=tf.float32)
    made = tensor_list.set_item_op(made, 1, [1.0, 2.0], element_dtype=tf.float32)
    np.testing.assert_array_equal(run(stacked(made)), [[0, 0], [1, 2]])


def test_pushed_elements_are_popped_in_turn():
    made = tensor_list.empty_op([2], -1, element_dtype=tf.float32)
    for row in ROWS:
        made = tensor_list.push_back_op(made, row, element_dtype=tf.float32)
    left, last = tensor_list.pop_back_op(made, [2], element_dtype=tf.float32)
    rest, popped = run([stacked(left), last])
    np.testing.assert_array_equal(popped, ROWS[2])
    np.testing.assert_array_equal(rest, ROWS[:2])


def test_rows_go_to_places_and_come_from_them():
    shape = np.array([2], np.int32)
    made = tensor_list.scatter_op(ROWS, [3, 0, 1], shape, 4, element_dtype=tf.float32)
    np.testing.assert_array_equal(run(stacked(made)), [ROWS[1], ROWS[2], [0, 0], ROWS[0]])
    found = tensor_list.gather_op(made, [1, 3], shape, element_dtype=tf.float32)
    np.testing.assert_array_equal(run(found), [ROWS[2], ROWS[0]])


def test_parts_of_different_lengths():
    shape = np.array([-1, 2], np.int32)
    lengths = np.array([1, 0, 2], np.int64)
    made = tensor_list.split_op(ROWS, shape, lengths, element_dtype=tf.float32)
    joined = tensor_list.concat_op(made, shape, lengths, element_dtype=tf.float32)
    values, counts = run(list(joined))
    np.testing.assert_array_equal(values, ROWS)
    np.testing.assert_array_equal(counts, lengths)


def test_gradients_of_lists_are_lists():
    x = tf.constant(ROWS)
    made = tensor_list.from_tensor_op(x, [2], element_dtype=tf.float32)
    made = tensor_list.set_item_op(made, 1, x[0] * 3.0, element_dtype=tf.float32)
    read = tensor_list.get_item_op(made, 2, [2], element_dtype=tf.float32)
    y = tf.reduce_sum(stacked(made)) + tf.reduce_sum(read * 5.0)
    expected = [[4, 4], [0, 0], [6, 6]]
    np.testing.assert_array_equal(run(tf.gradients(y, x)[0]), expected)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tensor_list.get_item_op(rows(), 3, ANY, element_dtype=tf.float32), "element 3"),
        (
            lambda: tensor_list.length_op(
                tensor_list.set_item_op(rows(), 0, [1.0], element_dtype=tf.float32)
            ),
            "does not fit",
        ),
        (
            lambda: tensor_list.length_op(
                tensor_list.reserve_op([2], 2**30, element_dtype=tf.float32)
            ),
            "1073741824 elements",
        ),
        (lambda: stacked(tf.data.Dataset.range(3)._variant_tensor), "list of tensors is expected"),
    ],
)
def test_mistakes(make, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        run(make())
