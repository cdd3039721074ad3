"""Comparisons and logic, in both tiers, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both

PAIRS = {
    tf.equal: np.equal,
    tf.not_equal: np.not_equal,
    tf.less: np.less,
    tf.less_equal: np.less_equal,
    tf.greater: np.greater,
    tf.greater_equal: np.greater_equal,
}
TYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int64, np.uint8]
TYPES += [np.uint64]


@pytest.mark.parametrize("kind", TYPES)
def test_values(kind):
    x, y = np.array([[1, 2, 3], [3, 2, 1]]).astype(kind), np.array([2, 2, 2]).astype(kind)
    values = run_both([f(tf.constant(x), tf.constant(y)) for f in PAIRS])
    for oracle, value in zip(PAIRS.values(), values, strict=True):
        assert value.dtype == np.bool_
        np.testing.assert_array_equal(value, oracle(x, y))


def test_nan_is_not_equal_to_itself():
    x = tf.constant([np.nan, 1.0])
    equal, differ = run_both([tf.equal(x, x), tf.not_equal(x, x)])
    np.testing.assert_array_equal(equal, [False, True])
    np.testing.assert_array_equal(differ, [True, False])


def test_strings_booleans_and_complex_numbers():
    cases = [
        (np.array([b"a", b"b"], object), np.array([b"a", b"c"], object)),
        (np.array([True, False]), np.array([True, True])),
        (np.array([1 + 1j, 2]), np.array([1 + 1j, 2j])),
    ]
    for x, y in cases:
        np.testing.assert_array_equal(run_both(tf.equal(x, y)), x == y)
        np.testing.assert_array_equal(run_both(tf.not_equal(x, y)), x != y)
    assert run_both(tf.equal("a", "a")) == np.True_
    with pytest.raises(TypeError, match="string"):
        tf.less("a", "b")


def test_shapes_that_do_not_fit():
    x, y = tf.placeholder(tf.int32, [3]), tf.placeholder(tf.int32, [2])
    with pytest.raises(ValueError, match="cannot be broadcast"):
        tf.equal(x, y)
    feed = {x: [1, 2, 3], y: [1, 2]}
    for name, want in (("Equal", False), ("NotEqual", True)):
        z = tf.get_op_def(name)(x, y, incompatible_shape_error=False)
        assert z.shape == ()
        assert run_both(z, feed) == want


def test_logic():
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    a, b = tf.constant(x), tf.constant(y)
    values = run_both(
        [tf.logical_and(a, b), tf.logical_or(a, b), tf.logical_xor(a, b), tf.logical_not(a)]
    )
    for value, want in zip(values, [x & y, x | y, x ^ y, ~x], strict=True):
        np.testing.assert_array_equal(value, want)
    with pytest.raises(TypeError, match="bool"):
        tf.logical_and(tf.constant(1), tf.constant(2))


def test_approximate_equality():
    near = tf.get_op_def("ApproximateEqual")
    x = np.array([1.0, 2.0, 3.0], np.float32)
    y = x + np.array([0.05, -0.05, 0.2], np.float32)
    np.testing.assert_array_equal(run_both(near(x, y, tolerance=0.1)), [True, True, False])


def test_bits():
    x = np.array([0b1100, 0b1010, 127], np.uint8)
    y = np.array([1, 2, 3], np.uint8)
    count = tf.get_op_def("PopulationCount")
    values = run_both(
        [
            *(tf.bitwise.left_shift(x, y), tf.bitwise.right_shift(x, y), tf.bitwise.invert(x)),
            *(tf.bitwise.bitwise_and(x, y), tf.bitwise.bitwise_or(x, y)),
            *(tf.bitwise.bitwise_xor(x, y), count(x), count(np.array([-1, 0], np.int32))),
        ]
    )
    expected = [x << y, x >> y, ~x, x & y, x | y, x ^ y, [2, 2, 7], [32, 0]]
    for value, want in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, want)
