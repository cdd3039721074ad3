from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives


def test_parting_and_stitching_is_the_identity() -> None:
    x, p = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int32, [None])
    parts = tf.dynamic_partition(x, p, 3)
    assert [q.dims for q in parts] == [(None, 2)] * 3
    places = tf.dynamic_partition(tf.range(tf.shape(x)[0]), p, 3)
    again = tf.dynamic_stitch(places, parts)
    a = np.arange(10, dtype=np.float32).reshape(5, 2)
    np.testing.assert_array_equal(run_both(again, {x: a, p: [2, 0, 2, 0, 0]}), a)


def test_the_last_of_equal_indices_wins_and_gaps_are_zero() -> None:
    merged = tf.dynamic_stitch([[0, 3], [[3]]], [[1, 2], [[9]]])
    assert merged.dims == (4,)
    assert run_both(merged).tolist() == [1, 0, 0, 9]


def test_scalars_are_routed_too() -> None:
    got = run_both(tf.dynamic_partition(7.0, 1, 2))
    assert [g.tolist() for g in got] == [[], [7]]


def test_mistakes() -> None:
    p = tf.placeholder(tf.int32, [2])
    parts = tf.dynamic_partition([1.0, 2.0], p, 2)
    for level in (INTERPRETED, COMPILED):
        with (
            session(level) as sess,
            pytest.raises(tf.errors.InvalidArgumentError, match=r"partitions\[1\] = 2 is not"),
        ):
            sess.run(parts, {p: [0, 2]})
    with pytest.raises(ValueError, match="must be a prefix"):
        tf.dynamic_partition(tf.zeros([3]), [0, 1], 2)
    with pytest.raises(ValueError, match="must be a prefix"):
        tf.dynamic_stitch([[0, 1]], [tf.zeros([3])])


def test_gradients() -> None:
    x = np.arange(8.0).reshape(4, 2) / 4

    def routed(x):
        first, second = tf.dynamic_partition(x, [1, 0, 0, 1], 2)
        return tf.dynamic_stitch([[0, 1], [3, 2]], [first**2, second**3])

    assert_derivatives(routed, x)
    assert_derivatives(lambda x: tf.dynamic_partition(x, [1, 0, 0, 1], 2)[1] ** 3, x)
