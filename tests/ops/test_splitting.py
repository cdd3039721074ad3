from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both
from tests.finite_differences import assert_derivatives


def test_sizes_from_data() -> None:
    x, sizes = tf.placeholder(tf.float32, [6]), tf.placeholder(tf.int32, [3])
    parts = tf.split(x, sizes)
    assert [p.dims for p in parts] == [(None,)] * 3
    got = run_both(parts, {x: np.arange(6, dtype=np.float32), sizes: [1, -1, 2]})
    assert [p.tolist() for p in got] == [[0], [1, 2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tf.split(tf.zeros([5]), 2), "5 cannot be split into 2 equal parts"),
        (lambda: tf.split(tf.zeros([5]), [2, 2]), "do not add up"),
        (lambda: tf.split(tf.zeros([5]), [-1, -1]), "at most one -1"),
        (lambda: tf.split(tf.zeros([5]), [6, -1]), "do not add up"),
        (lambda: tf.split(tf.zeros([5]), 5, axis=1), r"split_dim 1 is not in"),
        (lambda: tf.split(tf.zeros([4]), tf.constant(2)), "give a Python integer"),
        (lambda: tf.unstack(tf.placeholder(tf.float32, [None, 2])), "Cannot infer"),
        (lambda: tf.unstack(tf.placeholder(tf.float32)), "Cannot infer"),
        (lambda: tf.unstack(tf.zeros([3]), 2), "must be 2"),
    ],
)
def test_mistakes(build, message) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_wrong_number_at_run_time() -> None:
    x = tf.placeholder(tf.float32, [None])
    parts = tf.unstack(x, 2)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="must be 2"):
        sess.run(parts, {x: [1.0, 2.0, 3.0]})


def test_parts_without_a_gradient_get_zeros() -> None:
    x = tf.placeholder(tf.float32, [4])
    sources = [tf.split(x, 2)[1], tf.split(x, [1, 3])[0], tf.unstack(x)[2]]
    grads = [tf.gradients(y * y, x)[0] for y in sources]
    got = run_both(grads, {x: [1.0, 2.0, 3.0, 4.0]})
    assert [g.tolist() for g in got] == [[0, 0, 6, 8], [2, 0, 0, 0], [0, 0, 6, 0]]


def test_gradients() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert_derivatives(lambda x: tf.concat(tf.split(x, [2, 1], 1)[::-1], 1) ** 3 * x, x)
    assert_derivatives(lambda x: tf.stack(tf.unstack(x, axis=1), 0) ** 3, x)
