from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives

REDUCE = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_runs_are_reduced_and_gaps_filled(name, dtype) -> None:
    data = np.arange(1, 11).reshape(5, 2).astype(dtype)
    ids = np.array([0, 0, 2, 2, 2])
    got = run_both(getattr(tf.math, f"segment_{name}")(data, ids))
    gap = int(name == "prod")
    expected = np.stack(
        [REDUCE[name](data[:2], axis=0), [gap, gap], REDUCE[name](data[2:], axis=0)]
    ).astype(dtype)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, expected)


def test_static_shape() -> None:
    x, i = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [None])
    assert tf.segment_sum(x, i).dims == (None, 3)
    assert tf.segment_sum(x, [0, 1, 1]).dims == (2, 3)
    assert run_both(tf.segment_sum(x, i), {x: np.zeros((0, 3)), i: []}).shape == (0, 3)


@pytest.mark.parametrize("ids", [[0, 1, 0], [-1, 0, 1], [0, 1]])
def test_ids_must_increase_and_be_as_many_as_rows(ids) -> None:
    i = tf.placeholder(tf.int32, [None])
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="segment"):
        sess.run(tf.segment_sum(x, i), {x: [1.0, 2.0, 3.0], i: ids})


@pytest.mark.parametrize("name", REDUCE)
def test_gradients(name) -> None:
    reduce = getattr(tf.math, f"segment_{name}")
    data = np.array([[1.0, 5.0], [2.0, 3.0], [4.0, 1.0]])
    order = 1 if name == "prod" else 2
    assert_derivatives(lambda x: reduce(x, [0, 0, 2]) ** 2, data, order=order, tolerance=1e-5)


def test_ties_share_the_gradient() -> None:
    x = tf.placeholder(tf.float32, [4])
    (grad,) = tf.gradients(tf.segment_max(x, [0, 0, 0, 1]), x)
    assert run_both(grad, {x: [2, 2, 1, 5]}).tolist() == [0.5, 0.5, 0, 1]
