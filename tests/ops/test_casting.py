"""Casts and bitcasts, in both tiers, against NumPy and C's rules."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int16, np.int32]
TYPES += [np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_]


@pytest.mark.parametrize("source", TYPES)
def test_every_pair(source):
    x = np.array([0, 1, 2, 5.5, 100]).astype(source)
    targets = [t for t in TYPES if t is not source]
    values = run_both([tf.cast(tf.constant(x), t) for t in targets])
    for value, target in zip(values, targets, strict=True):
        assert value.dtype == target
        expected = x.astype(np.float64).astype(target)
        np.testing.assert_array_equal(value.astype(np.float64), expected.astype(np.float64))


def test_truncates_towards_zero():
    x = tf.constant([1.9, -1.9, 0.5, -0.5])
    np.testing.assert_array_equal(run_both(tf.cast(x, tf.int32)), [1, -1, 0, 0])


def test_what_does_not_fit_is_the_most_negative_number():
    x = tf.constant([np.nan, np.inf, -np.inf, 3e9, 1e30])
    np.testing.assert_array_equal(run_both(tf.cast(x, tf.int32)), np.full(5, -(2**31)))
    lowest = -(2**63)
    value = run_both(tf.cast(x, tf.int64))
    np.testing.assert_array_equal(value, [lowest, lowest, lowest, 3000000000, lowest])


def test_large_unsigned():
    x = tf.constant([2.0**63, 2.0**64 - 2048, 5.0], tf.float64)
    np.testing.assert_array_equal(run_both(tf.cast(x, tf.uint64)), [2**63, 2**64 - 2048, 5])


def test_booleans_and_complex_numbers():
    x = np.array([0.0, np.nan, 2.0])
    np.testing.assert_array_equal(run_both(tf.cast(x, tf.bool)), [False, True, True])
    z = tf.constant([1.5 + 2j, -2.5j])
    real, whole = run_both([tf.cast(z, tf.float32), tf.cast(z, tf.int32)])
    np.testing.assert_array_equal(real, [1.5, 0])
    np.testing.assert_array_equal(whole, [1, 0])
    assert run_both(tf.cast(x, tf.complex64)).dtype == np.complex64


def test_nothing_to_do():
    x = tf.constant([1.0])
    assert tf.cast(x, tf.float32) is x
    assert tf.cast(x, "float") is x
    assert tf.cast(1, tf.float64).dtype == tf.float64


def test_slices_stay_sparse():
    slices = tf.IndexedSlices(tf.constant([[1.5]]), tf.constant([2]), tf.constant([4, 1]))
    out = tf.cast(slices, tf.float64)
    assert isinstance(out, tf.IndexedSlices) and out.dtype == tf.float64


def test_gradients():
    assert_derivatives(lambda x: tf.cast(tf.cast(x, tf.complex128) ** 2, tf.float64), [1.0, 2.0])
    x = tf.constant([1.0])
    assert tf.gradients(tf.cast(x, tf.float64), x)[0].dtype == tf.float32
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), x) == [None]


def test_saturating():
    x = tf.constant([-300.0, -1.0, 100.0, 300.0, 1e20])
    np.testing.assert_array_equal(run_both(tf.saturate_cast(x, tf.uint8)), [0, 0, 100, 255, 255])
    np.testing.assert_array_equal(
        run_both(tf.saturate_cast(x, tf.int32)), [-300, -1, 100, 300, 2147483520]
    )
    small = tf.saturate_cast(tf.constant([70000, -70000], tf.int64), tf.int16)
    np.testing.assert_array_equal(run_both(small), [32767, -32768])


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [
        (np.float32, np.int32, (2, 3)),
        (np.float32, np.uint8, (2,)),
        (np.float64, np.float32, ()),
        (np.uint8, np.float32, (2, 4)),
        (np.int16, np.float64, (3, 4)),
        (np.complex64, np.float32, (2,)),
        (np.float32, np.complex64, (3, 2)),
        (np.complex64, np.int64, (2,)),
        (np.int64, np.complex64, (2,)),
        (np.complex128, np.uint8, (2,)),
    ],
)
def test_bitcast(source, target, shape):
    size = int(np.prod(shape)) * np.dtype(source).itemsize
    data = np.random.default_rng(0).integers(1, 60, size, np.uint8)
    array = data.view(source).reshape(shape)
    tensor = tf.bitcast(tf.constant(array), target)
    value = run_both(tensor, rtol=0, atol=0)
    assert value.shape == tensor.shape
    assert value.tobytes() == array.tobytes()


def test_bitcast_that_does_not_fit():
    with pytest.raises(ValueError, match="last dimension must be 4"):
        tf.bitcast(tf.zeros([3], tf.uint8), tf.float32)
