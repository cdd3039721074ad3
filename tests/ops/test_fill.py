from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

TYPES = [tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.uint64, tf.bool, tf.complex64]


@pytest.mark.parametrize("size", [3, 2000])
def test_zeros_and_ones_of_every_kind(size: int) -> None:
    results = run_both([f([2, size], dtype) for dtype in TYPES for f in (tf.zeros, tf.ones)])
    for i, result in enumerate(results):
        assert result.dtype == TYPES[i // 2].np_dtype
        assert result.shape == (2, size)
        assert (result == (i % 2)).all()


def test_strings_are_empty() -> None:
    x = tf.placeholder(tf.string, [None])
    results = run_both([tf.zeros([2], tf.string), tf.zeros_like(x)], {x: [b"a", b"b"]})
    assert [r.tolist() for r in results] == [[b"", b""]] * 2


def test_shapes_from_tensors() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    feed = {x: np.zeros((2, 3), np.float32)}
    tensors = [
        tf.zeros(tf.shape(x)),
        tf.ones([tf.shape(x)[0], 4]),
        tf.zeros(tf.shape(x)[0]),
        tf.fill(tf.shape(x), 2),
        tf.zeros_like(x, tf.int64),
        tf.ones_like(x),
    ]
    assert [t.dims for t in tensors] == [
        (None, 3),
        (None, 4),
        (None,),
        (None, 3),
        (None, 3),
        (None, 3),
    ]
    shapes = [r.shape for r in run_both(tensors, feed)]
    assert shapes == [(2, 3), (2, 4), (2,), (2, 3), (2, 3), (2, 3)]


def test_like_a_python_value() -> None:
    ones = run_both(tf.ones_like([[1.5, 2.5]], dtype=tf.bfloat16))
    assert ones.dtype == ml_dtypes.bfloat16 and ones.tolist() == [[1.0, 1.0]]


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="value must be a scalar"):
        tf.fill([2], [1, 2])
    with pytest.raises(ValueError, match="dims must be a vector"):
        tf.fill([[2]], 1)
    dims = tf.placeholder(tf.int32, [1])
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="negative"):
        sess.run(tf.fill(dims, 1), {dims: [-1]})


def test_gradient_of_fill_is_the_sum() -> None:
    assert_derivatives(lambda x: tf.fill([3], x) ** 3, 2.0)
