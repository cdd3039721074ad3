from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both


@pytest.mark.parametrize(
    "dtype", [np.int32, np.int64, np.float32, np.float64, np.uint8, ml_dtypes.bfloat16]
)
def test_in_order_of_appearance(dtype) -> None:
    x = tf.placeholder(dtype, [None])
    found = tf.unique_with_counts(x)
    a = np.array([4, 1, 4, 0, 1, 4]).astype(dtype)
    y, idx, count = run_both([found.y, found.idx, found.count], {x: a})
    assert y.tolist() == [4, 1, 0] and idx.tolist() == [0, 1, 0, 2, 1, 0]
    assert count.tolist() == [3, 2, 1]
    assert y.dtype == dtype and idx.dtype == count.dtype == np.int32
    np.testing.assert_array_equal(y[idx], a)


def test_strings_and_64_bit_places() -> None:
    y, idx = run_both(list(tf.unique(["b", "a", "b"], out_idx=tf.int64)))
    assert y.tolist() == [b"b", b"a"] and idx.tolist() == [0, 1, 0] and idx.dtype == np.int64


def test_difference_keeps_duplicates_and_order() -> None:
    out, idx = run_both(list(tf.setdiff1d([5, 1, 5, 2], [2, 9])))
    assert out.tolist() == [5, 1, 5] and idx.tolist() == [0, 1, 2]
    out, idx = run_both(list(tf.setdiff1d(["a", "b"], ["a"])))
    assert out.tolist() == [b"b"] and idx.tolist() == [1]


def test_only_vectors() -> None:
    with pytest.raises(ValueError, match="must be a vector"):
        tf.unique([[1, 2]])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("spread", [1, 10**6])
def test_integers_close_together_or_far_apart(dtype, spread) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(0, 90, 300).astype(np.uint64) * np.uint64(spread)
    a = np.minimum(x, limits.max).astype(dtype)
    for values in (a, limits.max - a, limits.min + a, a[:1], a[:0]):
        found = tf.unique_with_counts(tf.placeholder_with_default(values, [None]))
        y, idx, count = tf.Session().run([found.y, found.idx, found.count])
        expected, first, counts = np.unique(values, return_index=True, return_counts=True)
        order = np.argsort(first)
        np.testing.assert_array_equal(y, expected[order])
        np.testing.assert_array_equal(count, counts[order])
        np.testing.assert_array_equal(y[idx], values)
