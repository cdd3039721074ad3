from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_masks_of_any_rank_along_any_axis() -> None:
    x, m = tf.placeholder(tf.float32, [None, 3, 4]), tf.placeholder(tf.bool, [None, None])
    mask = np.array([[True, False, True], [False, True, False]])
    y = tf.boolean_mask(x, m)
    assert y.dims == (None, 4)
    np.testing.assert_array_equal(run_both(y, {x: A, m: mask}), A[mask])
    np.testing.assert_array_equal(
        run_both(tf.boolean_mask(x, mask[0], axis=1), {x: A}), A[:, mask[0]]
    )
    deep = np.arange(12).reshape(3, 4) % 5 == 0
    np.testing.assert_array_equal(run_both(tf.boolean_mask(x, deep, axis=1), {x: A}), A[:, deep])
    last = [True, False, False, True]
    np.testing.assert_array_equal(run_both(tf.boolean_mask(A, last, axis=-1)), A[..., [0, 3]])


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="mask cannot be scalar"):
        tf.boolean_mask(A, True)
    with pytest.raises(ValueError, match="Number of mask dimensions"):
        tf.boolean_mask(A, tf.placeholder(tf.bool))
    with pytest.raises(ValueError, match="not compatible"):
        tf.boolean_mask(A, [True, False, True])


def test_gradient_reaches_what_was_selected() -> None:
    assert_derivatives(lambda x: tf.boolean_mask(x, [True, False, True]) ** 3, np.arange(3.0) + 1)


def test_sequence_mask() -> None:
    n = tf.placeholder(tf.int64, [2, 2])
    lengths = np.array([[1, 0], [3, 2]])
    expected = np.arange(3) < lengths[..., None]
    np.testing.assert_array_equal(run_both(tf.sequence_mask(n), {n: lengths}), expected)
    floats = tf.sequence_mask([1, 3], 4, dtype=tf.float32)
    assert floats.dims == (2, 4)
    assert run_both(floats).tolist() == [[1, 0, 0, 0], [1, 1, 1, 0]]
    with pytest.raises(ValueError, match="maxlen must be scalar"):
        tf.sequence_mask([1], [2])
