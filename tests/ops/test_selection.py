from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives


def test_places_in_row_order_and_of_a_scalar() -> None:
    a = np.array([[0, 3, 0], [1, 0, 2]])
    assert run_both(tf.where(a)).tolist() == np.argwhere(a).tolist()
    assert tf.where(a).dims == (None, 2)
    assert run_both(tf.where(tf.constant(True))).shape == (1, 0)
    assert run_both(tf.where(tf.constant(False))).shape == (0, 0)
    assert run_both(tf.where(tf.constant([0.0, float("nan")]))).tolist() == [[1]]


def test_a_vector_chooses_rows_and_a_scalar_everything() -> None:
    x, y = np.ones((2, 3)), np.zeros((2, 3))
    c = tf.placeholder(tf.bool)
    chosen = tf.where(c, x, y)
    assert run_both(chosen, {c: [True, False]}).tolist() == [[1] * 3, [0] * 3]
    assert run_both(chosen, {c: True}).tolist() == x.tolist()


def test_shapes_must_fit_for_where_but_broadcast_for_where_v2() -> None:
    with pytest.raises(ValueError, match="not compatible"):
        tf.where([True, False], [1, 2], [1, 2, 3][:1] * 3)
    with pytest.raises(ValueError, match="both"):
        tf.where([True], [1])
    c = tf.placeholder(tf.bool)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="condition"):
        sess.run(tf.where(c, np.ones((2, 2)), np.ones((2, 2))), {c: [[True], [False]]})
    y = tf.where_v2([[True], [False]], [1, 2, 3], 0)
    assert y.dims == (2, 3)
    assert run_both(y).tolist() == [[1, 2, 3], [0, 0, 0]]


def test_gradients() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0) + 1
    c = np.array([[True, False, True], [False, False, True]])
    assert_derivatives(lambda x, y: tf.where(c, x, y) ** 3, x, x + 1)
    assert_derivatives(lambda x, y: tf.where([True, False], x, y) ** 3, x, x + 1)
    assert_derivatives(lambda x, y: tf.where_v2(c, x, y) ** 3, x, y)
    assert_derivatives(lambda x, y: tf.where_v2(c[:, :1], x, y) ** 3, 2.0, y)


def test_no_gradient_leaks_from_the_branch_not_taken() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.where(x > 0, tf.sqrt(tf.maximum(x, 1e-3)), tf.zeros_like(x))
    assert np.isfinite(run_both(tf.gradients(y, x)[0], {x: [-1.0, 4.0]})).all()


@pytest.mark.parametrize("shape", [(0,), (7,), (3, 0, 2), (5, 4), (3, 4, 5), (2, 1, 3, 2)])
@pytest.mark.parametrize("dtype", [bool, np.float32, np.int8, np.complex64])
def test_places_of_every_rank(shape, dtype) -> None:
    a = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    np.testing.assert_array_equal(run_both(tf.where(tf.constant(a))), np.argwhere(a))
