from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

REDUCE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def expected(name, data, ids, count):
    finfo = np.iinfo if data.dtype.kind in "iu" else ml_dtypes.finfo
    if name in ("sum", "prod"):
        start = data.dtype.type(name == "prod")
    else:
        start = finfo(data.dtype).min if name == "max" else finfo(data.dtype).max
    out = np.full((count, *data.shape[ids.ndim :]), start, data.dtype)
    for place in np.ndindex(ids.shape):
        if ids[place] >= 0:
            out[ids[place]] = REDUCE[name](out[ids[place]], data[place])
    return out


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.uint16, np.int64]
)
def test_every_type(name, dtype) -> None:
    data = (np.arange(12).reshape(6, 2) % 4 + 1).astype(dtype)
    ids = np.array([3, 0, -1, 3, 0, 3], np.int32)
    x, i = tf.placeholder(dtype, [None, 2]), tf.placeholder(tf.int32, [None])
    y = getattr(tf.math, f"unsorted_segment_{name}")(x, i, 5)
    assert y.dims == (5, 2)
    got = run_both(y, {x: data, i: ids})
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, expected(name, data, ids, 5))


def test_ids_of_any_rank_and_none_at_all() -> None:
    data, ids = np.arange(12.0).reshape(2, 3, 2), np.array([[0, 2, 0], [1, 1, -1]])
    got = run_both(tf.unsorted_segment_sum(data, ids, 3))
    np.testing.assert_array_equal(got, expected("sum", data, ids, 3))
    empty = tf.unsorted_segment_sum(np.zeros((0, 2)), np.zeros(0, np.int32), 2)
    assert run_both(empty).tolist() == [[0, 0], [0, 0]]


def test_complex_numbers() -> None:
    got = run_both(tf.unsorted_segment_sum(np.array([1j, 2, 3j]), [0, 1, 0], 2))
    assert got.tolist() == [4j, 2]


def test_an_id_beyond_the_last_segment() -> None:
    ids = tf.placeholder(tf.int32, [2])
    y = tf.unsorted_segment_sum([1.0, 2.0], ids, 3)
    for level in (INTERPRETED, COMPILED):
        with (
            session(level) as sess,
            pytest.raises(
                tf.errors.InvalidArgumentError,
                match=r"segment_ids\[1\] = 3 is out of range \[0, 3\)",
            ),
        ):
            sess.run(y, {ids: [0, 3]})


def test_shapes_must_fit() -> None:
    with pytest.raises(ValueError, match="must be a prefix"):
        tf.unsorted_segment_sum(tf.zeros([3]), [0, 1], 2)
    with pytest.raises(ValueError, match="negative"):
        tf.unsorted_segment_sum(tf.zeros([3]), [0, 1, 1], -2)


@pytest.mark.parametrize("name", REDUCE)
def test_gradients(name) -> None:
    reduce = getattr(tf.math, f"unsorted_segment_{name}")
    data = np.array([[1.0, 5.0], [2.0, 3.0], [4.0, 1.0], [0.5, 2.0]])

    def used(x):  # segment 2 is empty; its extreme is not for differences
        return reduce(x, [0, 1, 0, -1], 3)[:2] ** 2

    assert_derivatives(used, data, order=1 if name == "prod" else 2, tolerance=1e-5)


def test_gradient_of_a_product_with_zeros() -> None:
    x = tf.placeholder(tf.float32, [6])
    y = tf.unsorted_segment_prod(x, [0, 0, 1, 1, 1, -1], 2)
    (grad,) = tf.gradients(y, x)
    got = run_both(grad, {x: [0, 3, 0, 0, 5, 7]})
    assert got.tolist() == [3, 0, 0, 0, 0, 0]
