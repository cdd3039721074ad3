from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("indices", [1, [1, 0], [[0, 1], [1, 1]], np.zeros((0, 2), np.int32)])
def test_gather_is_numpys_take(axis, indices) -> None:
    x = tf.placeholder(tf.float32, A.shape)
    y = tf.gather(x, indices, axis=axis)
    expected = A.take(indices, axis)
    assert y.dims == expected.shape
    np.testing.assert_array_equal(run_both(y, {x: A}), expected)


@pytest.mark.parametrize("axis", [1, 2])
def test_batches_go_together(axis) -> None:
    x, i = tf.placeholder(tf.float32, A.shape), tf.placeholder(tf.int64, [2, 2])
    index = np.array([[0, 2], [1, 1]])
    expected = np.stack([A[b].take(index[b], axis - 1) for b in range(2)])
    got = run_both(tf.gather(x, i, axis=axis, batch_dims=1), {x: A, i: index})
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, i: tf.gather(x, i), r"indices\[0,1\] = 2 is not in \[0, 2\)"),
        (lambda x, i: tf.gather(x, -i, axis=1), r"indices\[0,1\] = -2 is not in \[0, 3\)"),
        (lambda x, i: tf.gather_nd(x, i), r"indices\[0\] = \[0, 2, 0\] does not index"),
        (lambda x, i: tf.scatter_nd(i[:, :2], [1.0], [2, 2]), r"\[0, 2\] does not index"),
    ],
)
def test_an_index_out_of_range_is_named(build, message) -> None:
    x, i = tf.placeholder(tf.float32, A.shape), tf.placeholder(tf.int32, [None, None])
    y = build(x[:, :2] if "does" in message else x, i)
    for level in (INTERPRETED, COMPILED):
        with (
            session(level) as sess,
            pytest.raises(tf.errors.InvalidArgumentError, match=message),
        ):
            sess.run(y, {x: A, i: [[0, 2, 0]]})


def test_mistakes_when_building() -> None:
    with pytest.raises(ValueError, match="at least a vector"):
        tf.gather(tf.constant(1.0), 0)
    with pytest.raises(ValueError, match="axis 2"):
        tf.gather(tf.zeros([2]), 0, axis=2)
    with pytest.raises(ValueError, match="batch_dims"):
        tf.gather(tf.zeros([2, 2]), [0], axis=0, batch_dims=1)
    with pytest.raises(ValueError, match="at most the rank"):
        tf.gather_nd(tf.zeros([2]), [[0, 0]])


def test_the_gradient_along_the_first_axis_stays_sparse() -> None:
    x = tf.placeholder(tf.float32, [1000, 2])
    i = tf.placeholder(tf.int32, [None])
    (grad,) = tf.gradients(tf.gather(x, i) ** 2, x)
    assert isinstance(grad, tf.IndexedSlices)
    feed = {x: np.ones((1000, 2), np.float32), i: [3, 5, 3]}
    values, indices, shape = run_both([grad.values, grad.indices, grad.dense_shape], feed)
    assert values.tolist() == [[2, 2]] * 3 and indices.tolist() == [3, 5, 3]
    assert shape.tolist() == [1000, 2]
    dense = run_both(tf.convert_to_tensor(grad), feed)
    assert dense[3].tolist() == [4, 4] and dense.sum() == 12


def test_the_sparse_gradient_of_indices_of_any_rank() -> None:
    x, i = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int64)
    (grad,) = tf.gradients(tf.gather(x, i), x)
    dense = run_both(tf.convert_to_tensor(grad), {x: np.zeros((3, 2)), i: [[0, 0], [2, 0]]})
    assert dense.tolist() == [[3, 3], [0, 0], [1, 1]]


def test_gradients() -> None:
    a = np.linspace(0.1, 1, 24).reshape(2, 3, 4)
    index = [[0, 2], [1, 1]]
    assert_derivatives(lambda x: tf.gather(x, index) ** 3, a[:, 0, :].repeat(2, 0))
    assert_derivatives(lambda x: tf.gather(x, index, axis=1) ** 3, a)
    assert_derivatives(lambda x: tf.gather(x, index, axis=2, batch_dims=1) ** 3, a)
    assert_derivatives(lambda x: tf.gather_nd(x, [[0, 1], [0, 1], [1, 2]]) ** 3, a)
    assert_derivatives(lambda x: tf.gather_nd(x, [[1], [1]]) ** 3, a)
    assert_derivatives(lambda x: tf.gather_nd(x, [1, 2, 3]) ** 3, a)


def test_gradient_of_batches_of_unknown_size() -> None:
    x, i = tf.placeholder(tf.float32, [None, None, 2]), tf.placeholder(tf.int32, [None, None])
    y = tf.gather(x, i, batch_dims=1)
    grad = run_both(tf.gradients(y * y, x)[0], {x: A[..., :2], i: [[0, 0], [2, 1]]})
    expected = np.zeros((2, 3, 2), np.float32)
    expected[0, 0], expected[1, 1], expected[1, 2] = (
        4 * A[0, 0, :2],
        2 * A[1, 1, :2],
        2 * A[1, 2, :2],
    )
    np.testing.assert_allclose(grad, expected)
