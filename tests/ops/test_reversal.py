from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives


def test_reverse_sequence_along_any_two_dimensions() -> None:
    a = np.arange(24).reshape(2, 3, 4)
    lengths = [1, 3, 2]
    expected = a.copy()
    for b, n in enumerate(lengths):
        expected[:, b, :n] = a[:, b, :n][:, ::-1]
    result = run_both(tf.reverse_sequence(a, lengths, seq_axis=2, batch_axis=1))
    np.testing.assert_array_equal(result, expected)
    swapped = run_both(tf.reverse_sequence(a.transpose(2, 1, 0), lengths, 0, 1))
    np.testing.assert_array_equal(swapped, expected.transpose(2, 1, 0))


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="names a dimension twice"):
        tf.reverse(tf.zeros([2, 2]), [0, -2])
    with pytest.raises(ValueError, match="two different dimensions"):
        tf.reverse_sequence(tf.zeros([2, 2]), [1, 1], 0, 0)
    with pytest.raises(ValueError, match="seq_axis"):
        tf.reverse_sequence(tf.zeros([2, 2]), [1, 1])
    lengths = tf.placeholder(tf.int32, [2])
    y = tf.reverse_sequence(tf.zeros([2, 3]), lengths, 1)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="between"):
            sess.run(y, {lengths: [1, 4]})


def test_gradients() -> None:
    x = weights = np.linspace(0.1, 1.2, 6).reshape(2, 3)
    assert_derivatives(lambda x: (tf.reverse(x, [1]) * weights) ** 3, x)
    assert_derivatives(lambda x: (tf.reverse_sequence(x, [2, 3], 1) * weights) ** 3, x)
