from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(("lower", "upper"), [(-1, 0), (0, -1), (1, 1), (0, 0), (-1, -1), (2, 3)])
def test_band_part_is_two_triangles(lower, upper) -> None:
    x, n = tf.placeholder(tf.float32, A.shape), tf.placeholder(tf.int64, [])
    expected = A if upper < 0 else np.tril(A, upper)
    expected = expected if lower < 0 else np.triu(expected, -lower)
    got = run_both(
        [tf.matrix_band_part(x, lower, upper), tf.matrix_band_part(x, n, upper)], {x: A, n: lower}
    )
    for value in got:
        np.testing.assert_array_equal(value, expected)


def test_too_many_diagonals() -> None:
    n = tf.placeholder(tf.int64, [])
    for level in (INTERPRETED, COMPILED):
        with (
            session(level) as sess,
            pytest.raises(tf.errors.InvalidArgumentError, match="at most 3"),
        ):
            sess.run(tf.matrix_band_part(A, n, 0), {n: 4})


def test_diagonals_of_any_even_rank() -> None:
    d = np.arange(6.0).reshape(2, 3)
    y = tf.diag(d)
    assert y.dims == (2, 3, 2, 3)
    whole, back = run_both([y, tf.diag_part(y)])
    np.testing.assert_array_equal(back, d)
    assert whole.sum() == d.sum() and whole[1, 2, 1, 2] == 5
    with pytest.raises(ValueError, match="even rank"):
        tf.diag_part(tf.zeros([2, 2, 2]))


def test_gradients() -> None:
    assert_derivatives(lambda x: tf.matrix_band_part(x, 1, 0) ** 3, A[0] / 10)
    assert_derivatives(lambda x: tf.diag(x) ** 3, np.array([1.0, 2.0]))
    assert_derivatives(lambda x: tf.diag_part(x) ** 3, np.arange(4.0).reshape(2, 2))
