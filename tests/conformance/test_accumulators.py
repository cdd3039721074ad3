"""Which gradients accumulators take, and the shape of what they give, against TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tensorflow

import runnel

tensorflow.disable_v2_behavior()

SHAPES = [None, (), [3], [None], [3, 2], [None, 2], [3, None], [None, None], [1, 2], [3, 2, 2]]
ROWS = np.array([[1, 2], [3, 4]], np.float32)
GRADIENTS: list[tuple[list[int], np.ndarray, Any]] = [
    *[([0, 1], ROWS, shape) for shape in (None, [3, 2], [-1, 2], [3, -1], [5, 2], [3], [], [3, 3])],
    ([0, 1], ROWS, [1, 2, 3]),
    ([0, 1], ROWS[:, 0], None),
    ([0, 1], ROWS[:, 0], [3]),
    ([0, 2], ROWS, [2, 2]),
    ([0, 7], ROWS, None),
    ([-1, 0], ROWS, None),
    ([1, 0], ROWS, None),
    ([0, 0], ROWS, None),
    ([0], ROWS, None),
    ([], ROWS[:0], None),
    ([0, 1], np.ones((2, 2, 2), np.float32), None),
    ([0, 1], np.ones((2, 2, 2), np.float32), [3, 2, 2]),
]


def taken(tf: Any, shape: Any, gradients: list[Any]) -> Any:
    """The gradient of each row and the shape that are taken; or the kind of error."""
    with tf.Graph().as_default(), tf.Session() as sess:
        try:
            accumulator = tf.SparseConditionalAccumulator(tf.float32, shape)
            for indices, values, whole in gradients:
                known = None if whole is None else np.array(whole, np.int64)
                sess.run(accumulator.apply_grad(np.array(indices, np.int64), values, known))
            indices, values, dense_shape = sess.run(accumulator.take_grad(len(gradients)))
        except tf.errors.InvalidArgumentError:
            return "InvalidArgumentError"
    rows: dict[int, Any] = {}
    for index, value in zip(indices.tolist(), values, strict=True):
        rows[index] = rows.get(index, 0) + value  # the same row twice means its sum
    return {index: value.tolist() for index, value in rows.items()}, dense_shape.tolist()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_sparse_accumulator_takes_the_gradients_that_tensorflows_takes(shape):
    for gradient in GRADIENTS:
        assert taken(runnel, shape, [gradient]) == taken(tensorflow, shape, [gradient]), gradient


@pytest.mark.parametrize("shape", [None, [None, 2], [3, 2]], ids=str)
def test_the_shape_of_two_gradients(shape):
    for first in (None, [3, 2], [4, 2]):
        for second in (None, [3, 2], [5, 2]):
            pair = [([0, 1], ROWS, first), ([1, 2], ROWS, second)]
            assert taken(runnel, shape, pair) == taken(tensorflow, shape, pair), (first, second)


def test_gradients_of_different_rows_do_not_add_up():
    pair = [([0, 1], ROWS, None), ([0, 1], ROWS[:, 0], None)]
    assert taken(runnel, None, pair) == taken(tensorflow, None, pair) == "InvalidArgumentError"
