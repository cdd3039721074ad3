from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("k", [0, 1, 3, -1, -2])
def test_one_diagonal_is_as_numpys(k) -> None:
    x = tf.placeholder(tf.float32, A.shape)
    y = tf.matrix_diag_part(x, k=k)
    expected = np.diagonal(A, k, 1, 2)
    assert y.dims == expected.shape
    np.testing.assert_array_equal(run_both(y, {x: A}), expected)
    v = np.arange(1.0, 4.0)
    np.testing.assert_array_equal(run_both(tf.matrix_diag(v, k=k)), np.diag(v, k))


@pytest.mark.parametrize("align", ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"])
def test_a_band_taken_out_and_put_back(align) -> None:
    x = tf.placeholder(tf.float32, A.shape)
    band = tf.matrix_diag_part(x, k=(-1, 2), align=align)
    back = tf.matrix_diag(band, k=(-1, 2), num_rows=3, num_cols=4, align=align)
    other = tf.matrix_set_diag(tf.zeros_like(x), band, k=(-1, 2), align=align)
    expected = np.triu(np.tril(A, 2), -1)
    for result in run_both([back, other], {x: A}):
        np.testing.assert_array_equal(result, expected)


def test_padding_value_and_types() -> None:
    got = run_both(tf.matrix_diag(tf.constant([1, 2], tf.int16), padding_value=9))
    assert got.dtype == np.int16 and got.tolist() == [[1, 9], [9, 2]]
    assert run_both(tf.matrix_diag([True, False])).tolist() == [[True, False], [False, False]]


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="at least a matrix"):
        tf.matrix_diag_part(tf.zeros([3]))
    with pytest.raises(ValueError, match="not diagonals"):
        tf.matrix_diag_part(tf.zeros([3, 3]), k=3)
    with pytest.raises(ValueError, match="do not fit"):
        tf.matrix_diag([1, 2], num_rows=4, num_cols=4)


def test_eye() -> None:
    n = tf.placeholder(tf.int32, [])
    fixed, wide, batch, dynamic = run_both(
        [tf.eye(3), tf.eye(2, 4, dtype=tf.int32), tf.eye(2, batch_shape=[3]), tf.eye(n)], {n: 2}
    )
    np.testing.assert_array_equal(fixed, np.eye(3))
    np.testing.assert_array_equal(wide, np.eye(2, 4))
    np.testing.assert_array_equal(batch, np.stack([np.eye(2)] * 3))
    np.testing.assert_array_equal(dynamic, np.eye(2))


def test_gradients() -> None:
    a = A[0].astype(np.float64) / 10
    assert_derivatives(lambda x: tf.matrix_diag_part(x, k=(-1, 1)) ** 3, a)
    assert_derivatives(lambda x: tf.matrix_diag(x, k=1) ** 3, a)
    assert_derivatives(lambda x, d: tf.matrix_set_diag(x, d) ** 3, a, np.array([1.0, 2.0, 3.0]))
