from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from runnel.ops.slicing import update_slice_op
from runnel.runtime.compile import compiler
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

A = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_size_minus_one_goes_to_the_end() -> None:
    x, begin = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [2])
    assert tf.slice(x, [1, 1], [-1, -1]).dims == (None, 3)
    np.testing.assert_array_equal(run_both(tf.slice(x, [1, 1], [-1, 2]), {x: A}), A[1:, 1:3])
    got = run_both(tf.slice(x, begin, [-1, 2]), {x: A, begin: [2, 0]})
    np.testing.assert_array_equal(got, A[2:, :2])


def test_a_place_from_data_compiles_once() -> None:
    x, begin = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.int64, [2])
    y = tf.slice(x, begin, [2, 2])
    assert y.dims == (2, 2)
    grad = tf.gradients(y * y, x)[0]
    with session(COMPILED) as sess:
        before = compiler.compilations
        for i, j in ((0, 0), (1, 2)):
            value, slope = sess.run([y, grad], {x: A, begin: [i, j]})
            np.testing.assert_array_equal(value, A[i : i + 2, j : j + 2])
            assert slope.sum() == 2 * value.sum() and slope[i, j] == 2 * A[i, j]
        assert compiler.compilations == before + 1


@pytest.mark.parametrize(
    ("begin", "size", "message"),
    [
        ([4, 0], [0, 0], r"begin\[0\] in \[0, 3\], but got 4"),
        ([0, 3], [1, 2], r"size\[1\] in \[0, 1\], but got 2"),
        ([-1, 0], [1, 1], r"begin\[0\]"),
    ],
)
def test_out_of_range(begin, size, message) -> None:
    with pytest.raises(ValueError, match=message):
        tf.slice(tf.zeros([3, 4]), begin, size)
    x, place = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.int32, [2])
    for y in (tf.slice(x, begin, size), tf.slice(x, place, size)):
        for level in (INTERPRETED, COMPILED):
            with (
                session(level) as sess,
                pytest.raises(tf.errors.InvalidArgumentError, match=message),
            ):
                sess.run(y, {x: A, place: begin})


def test_wrong_rank() -> None:
    with pytest.raises(ValueError, match="as many elements as the rank"):
        tf.slice(tf.zeros([3, 4]), [0], [1])


def test_updating_a_slice_stays_inside() -> None:
    x, place = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.int32, [2])
    y = update_slice_op(x, -tf.ones([2, 2]), place)
    expected = A.copy()
    expected[1:, 2:] = -1
    np.testing.assert_array_equal(run_both(y, {x: A, place: [9, 2]}), expected)


def test_gradients() -> None:
    a = A.astype(np.float64) / 10
    assert_derivatives(lambda x: tf.slice(x, [1, 0], [2, 3]) ** 3, a)
    place = lambda x: tf.cast(x[0, 1] * 0, tf.int32) + [1, 2]  # noqa: E731 (not a constant)
    assert_derivatives(lambda x: tf.slice(x, place(x), [2, 1]) ** 3, a)
