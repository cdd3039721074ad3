"""The k largest entries and membership in them."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

TYPES = [
    *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64),
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
]


def largest(x, k):
    """By sorting Python tuples: descending values, then ascending indices."""
    rows = x.reshape(-1, x.shape[-1]).tolist()
    picked = [sorted(range(len(r)), key=lambda i: (-r[i], i))[:k] for r in rows]
    return np.array(picked, int).reshape(*x.shape[:-1], k)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("k", [0, 1, 3, 6])
def test_values_and_ties(dtype, k):
    x = np.random.default_rng(0).integers(0, 5, (2, 3, 6)).astype(dtype)
    top = tf.nn.top_k(tf.constant(x), k)
    values, indices = run_both([top.values, top.indices])
    assert values.dtype == dtype
    assert indices.dtype == np.int32
    expected = largest(x.astype(np.int64), k)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, -1))


def test_extreme_integers():
    x = np.array([np.iinfo(np.int8).min, 0, np.iinfo(np.int8).max], np.int8)
    assert run_both(tf.nn.top_k(tf.constant(x), 3).indices).tolist() == [2, 1, 0]


def test_k_as_a_tensor():
    k = tf.placeholder(tf.int32, [])
    top = tf.nn.top_k([[1.0, 4.0, 2.0]], k)
    assert top.values.shape.as_list() == [1, None]
    assert run_both(top.values, {k: 2}).tolist() == [[4, 2]]
    assert run_both(top.values, {k: 1}).tolist() == [[4]]


def test_old_op():
    values, indices = tf.get_op_def("TopK")(tf.constant([1.0, 4.0, 2.0]), k=2)
    assert run_both([values, indices])[1].tolist() == [1, 2]
    x = tf.constant([1.0, 4.0, 2.0])
    values, _ = tf.get_op_def("TopK")(x, k=2)
    assert run_both(tf.gradients(values, x)[0]).tolist() == [0, 1, 1]


@pytest.mark.parametrize("shape", [(5,), (2, 4), (2, 2, 3)])
def test_derivatives(shape):
    x = np.random.default_rng(1).permutation(np.prod(shape)).reshape(shape) / 3
    assert_derivatives(lambda t: tf.nn.top_k(t, 2).values, x, order=1)
    assert_derivatives(lambda t: tf.nn.top_k(t, 2).values ** 3, x, tolerance=1e-5)


def test_gradient_with_an_unknown_shape():
    x = tf.placeholder(tf.float32)
    grad = tf.gradients(tf.nn.top_k(x, 1).values, x)[0]
    assert run_both(grad, {x: [[1.0, 3.0], [5.0, 2.0]]}).tolist() == [[0, 1], [1, 0]]


def test_top_k_errors():
    with pytest.raises(ValueError, match="last dimension >= k = 3 but is 2"):
        tf.nn.top_k([1.0, 2.0], 3)
    with pytest.raises(ValueError, match="scalar"):
        tf.nn.top_k(1.0)
    with pytest.raises(ValueError, match="at least 0"):
        tf.nn.top_k([1.0], -1)
    x = tf.placeholder(tf.float32)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="k = 3"):
            sess.run(tf.nn.top_k(x, 3).values, {x: [1.0]})


def test_in_top_k():
    predictions = np.array([[0.1, 0.7, 0.2], [0.5, 0.25, 0.25], [1, 1, 1], [1, 2, 3]], np.float32)
    p = tf.constant(predictions)
    for dtype in (np.int32, np.int64):
        targets = np.array([2, 1, 0, 0], dtype)
        for k, expected in ((1, [0, 0, 1, 0]), (2, [1, 1, 1, 0]), (3, [1, 1, 1, 1])):
            assert run_both(tf.nn.in_top_k(p, targets, k)).tolist() == [bool(e) for e in expected]
            old = tf.get_op_def("InTopK")(p, targets, k=k)
            assert run_both(old).tolist() == [bool(e) for e in expected]


def test_in_top_k_without_an_answer():
    predictions = [[np.nan, 1.0], [np.inf, 1.0], [1.0, 2.0], [1.0, 2.0]]
    assert not run_both(tf.nn.in_top_k(predictions, [1, 0, 2, -1], 2)).any()


def test_in_top_k_errors():
    with pytest.raises(ValueError, match="rank 2"):
        tf.nn.in_top_k([1.0], [0], 1)
    with pytest.raises(ValueError, match="not compatible"):
        tf.nn.in_top_k([[1.0]], [0, 0], 1)


def test_name():
    assert tf.nn.in_top_k([[1.0]], [0], 1).op.name == "in_top_k/InTopKV2"


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_a_nan_is_less_than_any_number(dtype):
    x = np.array([[1, np.nan, 3], [np.nan, -np.inf, np.inf], [np.nan, -np.nan, 0]], dtype)
    top = tf.nn.top_k(tf.constant(x), 3)
    rising, falling = tf.sort(tf.constant(x)), tf.sort(tf.constant(x), direction="DESCENDING")
    best, up, down = run_both([top.indices, rising, falling])
    assert best.tolist() == [[2, 0, 1], [2, 1, 0], [2, 0, 1]]
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(up.astype(np.float64), np.sort(wide))  # NumPy has NaNs last
    np.testing.assert_array_equal(down.astype(np.float64), -np.sort(-wide))


@pytest.mark.parametrize("k", [1, 5, 8, 9, 20, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("different", [3, 10**4])
def test_few_of_long_rows(dtype, k, different):
    """Found one by one, or at once: equal ones by their index, NaNs and infinities in place."""
    rng = np.random.default_rng(k)
    x = rng.integers(-different, different, (4, 3, 160)).astype(dtype)
    x[0, 0] = 7
    x[0, 1] = np.iinfo(dtype).min if np.dtype(dtype).kind != "f" else -np.inf
    x[0, 1, 100] = 3
    top = tf.nn.top_k(tf.constant(x), k)
    values, indices = run_both([top.values, top.indices])
    np.testing.assert_array_equal(indices, largest(x, k))
    np.testing.assert_array_equal(values, np.take_along_axis(x, largest(x, k), -1))
    if np.dtype(dtype).kind == "f":
        x[:, 2, ::2] = np.nan
        x[:, 1, ::3] = np.inf
        found = run_both(tf.nn.top_k(tf.constant(x), k)[1])
        np.testing.assert_array_equal(found, largest(np.nan_to_num(x, nan=-np.inf), k))
