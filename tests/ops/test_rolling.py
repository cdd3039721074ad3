from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

A = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("shift", "axis"), [(1, 0), (-2, 1), (7, -1), ([1, 2], [0, 1]), ([1, 1], [1, 1])]
)
def test_roll_is_numpys(shift, axis) -> None:
    x, s = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, np.shape(shift))
    y = tf.roll(x, s, axis)
    assert y.dims == (None, 4)
    np.testing.assert_array_equal(run_both(y, {x: A, s: shift}), np.roll(A, shift, axis))


def test_gradient_and_mistakes() -> None:
    assert_derivatives(lambda x: tf.roll(x, [1, -1], [0, 1]) ** 3 * A, A / 10)
    with pytest.raises(ValueError, match="axis 2"):
        tf.roll(A, 1, 2)
    with pytest.raises(ValueError, match="same rank"):
        tf.roll(A, [1, 2], 0)
