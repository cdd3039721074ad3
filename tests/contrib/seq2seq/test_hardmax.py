from __future__ import annotations

import numpy as np

import runnel as tf
from tests.both_tiers import run_both


def test_the_largest_gets_everything():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    result = tf.contrib.seq2seq.hardmax(x)
    assert result.shape.as_list() == [2, 3, 4]
    np.testing.assert_array_equal(run_both(result), x == x.max(-1, keepdims=True))


def test_a_size_that_is_not_known():
    x = tf.placeholder(tf.float64, [None, None])
    values = run_both(tf.contrib.seq2seq.hardmax(x), {x: [[1.0, 3.0, 2.0]]})
    np.testing.assert_array_equal(values, [[0, 1, 0]])
    assert values.dtype == np.float64
