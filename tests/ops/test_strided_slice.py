from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.ops.strided_slice import strided_slice_grad_op
from tests.both_tiers import run_both

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("arguments", "masks", "key"),
    [
        (([0, 1], [2, 3]), {}, np.s_[0:2, 1:3]),
        (([1, 2, 3], [0, 0, 0], [-1, -1, -2]), {}, np.s_[1:0:-1, 2:0:-1, 3:0:-2]),
        (([1, 0], [9, 9], [1, 1]), {"begin_mask": 1, "end_mask": 3}, np.s_[:, 0:]),
        (([0, 1], [0, 3], [1, 1]), {"ellipsis_mask": 1}, np.s_[..., 1:3]),
        (([0, 0], [0, 2], [1, 1]), {"new_axis_mask": 1}, np.s_[None, 0:2]),
        (([-1, 0], [0, 2], [1, 1]), {"shrink_axis_mask": 1}, np.s_[-1, 0:2]),
        # A new axis wins over dropping one.
        (([0], [1], [1]), {"new_axis_mask": 1, "shrink_axis_mask": 1}, np.s_[None]),
    ],
)
def test_masks(arguments, masks, key) -> None:
    x = tf.placeholder(tf.float32, A.shape)
    y = tf.strided_slice(x, *arguments, **masks)
    assert y.dims == A[key].shape
    np.testing.assert_array_equal(run_both(y, {x: A}), A[key])


def test_parts_of_a_shape_are_known_where_its_dimensions_are() -> None:
    x = tf.placeholder(tf.float32, [None, 3, 4])
    assert tf.zeros(tf.shape(x)[1:]).dims == (3, 4)
    assert tf.zeros([tf.shape(x)[0], tf.shape(x)[2]]).dims == (None, 4)


def test_gradient_op_puts_values_back() -> None:
    dy = tf.placeholder(tf.float32, [2, 2])
    y = strided_slice_grad_op([5, 3], [4, 0], [0, 2], [-2, 1], dy)
    assert y.dims == (5, 3)
    expected = np.zeros((5, 3), np.float32)
    expected[4:0:-2, 0:2] = [[1, 2], [3, 4]]
    np.testing.assert_array_equal(run_both(y, {dy: [[1, 2], [3, 4]]}), expected)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="same length"):
        tf.strided_slice(tf.zeros([3, 3]), [0, 0], [1])
    with pytest.raises(ValueError, match="only stride 1"):
        tf.strided_slice(tf.zeros([3]), [0], [1], [-1], shrink_axis_mask=1)
