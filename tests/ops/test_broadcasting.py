from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives


def test_broadcast_shapes() -> None:
    a, b = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.int32, [3])
    result = run_both(tf.broadcast_dynamic_shape(a, b), {a: [4, 1], b: [2, 1, 5]})
    np.testing.assert_array_equal(result, [2, 4, 5])
    static = tf.broadcast_static_shape(tf.TensorShape([None, 1]), tf.TensorShape([5, 3]))
    assert static.as_list() == [5, 3]
    with pytest.raises(ValueError, match="cannot be broadcast"):
        tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3]))


def test_mistakes() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) cannot be broadcast to \(2, 3\)"):
        tf.broadcast_to(tf.zeros([2]), [2, 3])
    x = tf.placeholder(tf.float32)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="broadcast"):
        sess.run(tf.broadcast_to(x, [2, 3]), {x: np.zeros(2, np.float32)})


@pytest.mark.parametrize("shape", [[2, 3], [4, 2, 3]])
def test_gradient_sums_over_what_was_stretched(shape) -> None:
    assert_derivatives(lambda x: tf.broadcast_to(x, shape) ** 3, np.array([[1.0], [2.0]]))


def test_meshgrid() -> None:
    a, b, c = np.arange(3.0), np.arange(2.0), np.arange(4.0)
    for indexing in ("xy", "ij"):
        ours = run_both(tf.meshgrid(a, b, c, indexing=indexing))
        for x, y in zip(ours, np.meshgrid(a, b, c, indexing=indexing), strict=True):
            np.testing.assert_array_equal(x, y)
    n = tf.placeholder(tf.int32, [None])
    assert [g.shape for g in run_both(tf.meshgrid(n, n), {n: [1, 2]})] == [(2, 2)] * 2
    with pytest.raises(ValueError, match="indexing"):
        tf.meshgrid(a, b, indexing="yx")
