from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives


def test_conjugate_transpose() -> None:
    a = np.array([[1 + 2j, 3], [4, 5 - 1j]], np.complex64)
    result = run_both([tf.transpose(tf.constant(a), conjugate=True), tf.transpose(a)])
    np.testing.assert_array_equal(result[0], a.conj().T)
    np.testing.assert_array_equal(result[1], a.T)


def test_permutation_from_data_and_of_unknown_rank() -> None:
    x, perm = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [3])
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    permuted, reversed_, swapped = run_both(
        [tf.transpose(x, perm), tf.transpose(x), tf.matrix_transpose(x)], {x: a, perm: [1, 2, 0]}
    )
    np.testing.assert_array_equal(permuted, a.transpose(1, 2, 0))
    np.testing.assert_array_equal(reversed_, a.T)
    np.testing.assert_array_equal(swapped, a.swapaxes(1, 2))


def test_what_is_not_a_permutation() -> None:
    with pytest.raises(ValueError, match="not a permutation"):
        tf.transpose(tf.zeros([2, 3]), [0, 0])
    with pytest.raises(ValueError, match=r"perm 2 is not in \[-2, 2\)"):
        tf.transpose(tf.zeros([2, 3]), [0, 2])
    with pytest.raises(ValueError, match="rank >= 2"):
        tf.matrix_transpose(tf.zeros([2]))
    order = tf.placeholder(tf.int32, [None])
    inverse = tf.invert_permutation(order)
    np.testing.assert_array_equal(run_both(inverse, {order: [3, 0, 1, 2]}), [1, 2, 3, 0])
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="permut"):
            sess.run(inverse, {order: [0, 0, 1]})


def test_gradient_keeps_the_static_shape() -> None:
    x = tf.placeholder(tf.float32, [2, 3, 4])
    (grad,) = tf.gradients(tf.transpose(x, [2, 0, 1]), x)
    assert grad.dims == (2, 3, 4)
    assert_derivatives(lambda x: tf.transpose(x, [-1, 0]) ** 3, np.arange(6.0).reshape(2, 3))
