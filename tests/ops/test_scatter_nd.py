from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives


def test_equal_coordinates_add_up() -> None:
    i, v = tf.placeholder(tf.int32, [None, 1]), tf.placeholder(tf.int32, [None])
    y = tf.scatter_nd(i, v, [5])
    assert y.dims == (5,)
    assert run_both(y, {i: [[1], [3], [1]], v: [1, 2, 4]}).tolist() == [0, 5, 0, 2, 0]


def test_slices_and_the_whole() -> None:
    rows = run_both(tf.scatter_nd([[1]], [[7.0, 8.0]], [2, 2]))
    assert rows.tolist() == [[0, 0], [7, 8]]
    whole = run_both(tf.scatter_nd(np.zeros((3, 0), np.int32), [[1.0], [2.0], [3.0]], [1]))
    assert whole.tolist() == [6]


def test_copies_with_changes() -> None:
    x = tf.placeholder(tf.float32, [3])
    index, v = [[0], [2]], [5.0, 6.0]
    got = run_both(
        [
            f(x, index, v)
            for f in (tf.tensor_scatter_update, tf.tensor_scatter_add, tf.tensor_scatter_sub)
        ],
        {x: [1.0, 2.0, 3.0]},
    )
    assert [g.tolist() for g in got] == [[5, 2, 6], [6, 2, 9], [-4, 2, -3]]


def test_shapes_must_fit() -> None:
    with pytest.raises(ValueError, match=r"that is \(2, 3\), not \(2,\)"):
        tf.scatter_nd([[0], [1]], [1.0, 2.0], [4, 3])
    with pytest.raises(ValueError, match="at most the rank"):
        tf.tensor_scatter_update(tf.zeros([3]), [[0, 0]], [1.0])


def test_gradients() -> None:
    v, x = np.array([1.0, 2.0, 3.0]), np.arange(6.0)
    index = [[1], [4], [1]]
    assert_derivatives(lambda v: tf.scatter_nd(index, v, [6]) ** 3, v)
    unique = [[1], [4], [0]]
    assert_derivatives(lambda x, v: tf.tensor_scatter_update(x, unique, v) ** 3, x, v)
    assert_derivatives(lambda x, v: tf.tensor_scatter_add(x, index, v) ** 3, x, v)
    assert_derivatives(lambda x, v: tf.tensor_scatter_sub(x, index, v) ** 3, x, v)
