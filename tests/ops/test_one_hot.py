from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.int64])
def test_indices_of_every_type(dtype) -> None:
    i = tf.placeholder(dtype, [3])
    y = tf.one_hot(i, 300)
    assert y.dims == (3, 300) and y.dtype == tf.float32
    got = run_both(y, {i: np.array([0, 100, 5], dtype)})
    np.testing.assert_array_equal(got, np.eye(300)[[0, 100, 5]])


def test_values_axis_and_indices_out_of_range() -> None:
    i = np.array([[0, -1], [2, 1]])
    got = run_both(tf.one_hot(i, 3, on_value=5, off_value=-1, axis=1))
    assert got.dtype == np.int32
    expected = np.where(np.arange(3)[None, :, None] == i[:, None, :], 5, -1)
    np.testing.assert_array_equal(got, expected)
    assert run_both(tf.one_hot(1, 2, True, False)).tolist() == [False, True]
    assert run_both(tf.one_hot([1], 0)).shape == (1, 0)


def test_types() -> None:
    assert tf.one_hot([1], 2, dtype=tf.bfloat16).dtype == tf.bfloat16
    assert tf.one_hot([1], 2, on_value=1.5, dtype=tf.float64).dtype == tf.float64
    with pytest.raises(TypeError, match="do not match"):
        tf.one_hot([1], 2, on_value=1.5, dtype=tf.int32)
    with pytest.raises(ValueError, match="axis must be"):
        tf.one_hot([1], 2, axis=3)
    with pytest.raises(ValueError, match="depth must not be negative"):
        tf.one_hot([1], -2)


def test_depth_from_data() -> None:
    depth = tf.placeholder(tf.int32, [])
    assert run_both(tf.one_hot([1], depth), {depth: 3}).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0), (1, 1), (40, 20)])
def test_every_axis(axis, shape) -> None:
    i = np.random.default_rng(0).integers(-2, 6, shape)
    got = run_both(tf.one_hot(i, 4, 2.5, -1.0, axis=axis))
    expected = np.where(i[..., None] == np.arange(4), 2.5, -1.0)
    np.testing.assert_array_equal(got, np.moveaxis(expected, -1, axis))
