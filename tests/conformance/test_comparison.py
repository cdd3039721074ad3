"""Comparisons, logic and bits against TensorFlow."""

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.side_by_side import compare

ORDERED = ["float16", "float32", "float64", "int8", "int16", "int32", "int64"]
ORDERED += ["uint8", "uint16", "uint32", "uint64", "bfloat16"]
X = np.array([[1, 2, 3], [4, 5, 6]])
Y = np.array([3, 2, 5])


def every(tf, x, y):
    return [
        *(tf.equal(x, y), tf.not_equal(x, y), tf.less(x, y), tf.less_equal(x, y)),
        *(tf.greater(x, y), tf.greater_equal(x, y), x < y, x <= y, x > y, x >= y),
    ]


@pytest.mark.parametrize("dtype", ORDERED)
def test_ordered_types(dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    compare(every, X.astype(kind), Y.astype(kind), order=0)


def test_special_values():
    values = np.array([0.0, -0.0, 1, np.inf, -np.inf, np.nan])
    x, y = (a.reshape(-1) for a in np.meshgrid(values, values))
    compare(every, x, y, order=0)


def test_unordered_types():
    def build(tf, x, y):
        return [tf.equal(x, y), tf.not_equal(x, y)]

    compare(build, np.array([True, False]), np.array([True, True]), order=0)
    compare(build, np.array([b"a", b"b"], object), np.array([b"a", b"c"], object), order=0)
    compare(build, np.array(b"a", object), np.array([b"a", b"c"], object), order=0)
    compare(build, np.array([1 + 2j, 3]), np.array([1 + 2j, 3j]), order=0)


# Of unknown sizes TensorFlow claims that the result has rank 2, which is then not true.
@pytest.mark.parametrize("shapes", [[[2, 3], [2]], [[2, 3], [None]], [None, None]])
def test_incompatible_shapes_may_be_unequal(shapes):
    def build(tf, x, y):
        return [
            raw(tf, op_type, x, y, incompatible_shape_error=False)
            for op_type in ("Equal", "NotEqual")
        ]

    compare(build, X, np.array([1, 2]), shapes=shapes, order=0)


def test_logic():
    x, y = (a.reshape(-1) for a in np.meshgrid([True, False], [True, False]))
    compare(
        lambda tf, a, b: [
            *(tf.logical_and(a, b), tf.logical_or(a, b), tf.logical_xor(a, b)),
            *(tf.logical_not(a), a & b, a | b, a ^ b, ~a, a & True, False | a),
        ],
        x,
        y,
        order=0,
    )


def raw(tf, op_type, x, y, **attrs):
    """An op by its type, in either library."""
    if hasattr(tf, "raw_ops"):
        return getattr(tf.raw_ops, op_type)(x=x, y=y, **attrs)
    return tf.get_op_def(op_type)(x, y, **attrs)


def test_approximately_equal():
    x = np.array([1.0, 2.0, 3.0], np.float32)
    compare(
        lambda tf, a, b: [
            raw(tf, "ApproximateEqual", a, b, tolerance=0.1),
            raw(tf, "ApproximateEqual", a, b),
        ],
        x,
        x + np.array([0.05, 0.2, 0], np.float32),
        order=0,
    )


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint16", "uint64"])
def test_bits(dtype):
    kind = np.dtype(dtype)
    x = np.array([0, 1, 37, 100, 127], kind)
    y = np.array([3, 1, 5, 0, 2], kind)
    if kind.kind == "i":
        x = np.concatenate([x, -x])
        y = np.concatenate([y, y])

    def build(tf, a, b):
        names = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
        out = [getattr(tf.bitwise, name)(a, b) for name in names]
        return [*out, tf.bitwise.invert(a), a & b, a | b, a ^ b, ~a]

    compare(build, x, y, order=0)
