from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("mode", ["CONSTANT", "reflect", "SYMMETRIC"])
@pytest.mark.parametrize("paddings", [[(0, 0), (0, 0)], [(1, 0), (2, 1)], [(0, 1), (0, 2)]])
def test_pad_is_as_numpys(mode, paddings) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    y = tf.pad(x, paddings, mode)
    expected = np.pad(A, paddings, mode=mode.lower())
    assert y.dims == expected.shape
    np.testing.assert_array_equal(run_both(y, {x: A}), expected)


def test_pad_with_a_value_of_the_right_type() -> None:
    result = run_both(tf.pad(tf.constant([1, 2], tf.int8), [[1, 1]], constant_values=7))
    assert result.dtype == np.int8 and result.tolist() == [7, 1, 2, 7]
    assert run_both(tf.pad(tf.constant([True]), [[0, 2]])).tolist() == [True, False, False]


def test_tile_of_unknown_shape() -> None:
    x, times = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [2])
    assert tf.tile(x, times).dims == (None, None)
    np.testing.assert_array_equal(
        run_both(tf.tile(x, times), {x: A, times: [2, 2]}), np.tile(A, (2, 2))
    )


def test_sizes_that_do_not_depend_on_data_are_known() -> None:
    x, n = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [])
    assert tf.tile(x, [n, 2]).dims == (None, 8)
    assert tf.tile(x, tf.concat([[n], [3]], 0)).dims == (None, 12)
    assert tf.tile(tf.ones([2, 3]), [1, n]).dims == (2, None)
    assert tf.pad(tf.ones([2, 3]), [[n, 0], [1, 1]]).dims == (None, 5)
    assert tf.pad(x, [[1, 1], [0, n]]).dims == (None, None)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: tf.pad(x, [[1, 1]]), r"\(2, 2\)"),
        (lambda x: tf.pad(x, [[-1, 0], [0, 0]]), "negative"),
        (lambda x: tf.pad(x, [[2, 0], [0, 0]], "REFLECT"), "at most 1"),
        (lambda x: tf.pad(x, [[0, 0], [4, 0]], "SYMMETRIC"), "at most 3"),
        (lambda x: tf.tile(x, [2]), "2 elements"),
        (lambda x: tf.tile(x, [2, -1]), "negative"),
    ],
)
def test_mistakes(build, message) -> None:
    with pytest.raises(ValueError, match=message):
        build(tf.zeros([2, 3]))
    x = tf.placeholder(tf.float32)
    try:
        y = build(x)
    except ValueError:
        return  # the number of dimensions alone shows it
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(y, {x: A})


def test_unknown_mode() -> None:
    with pytest.raises(ValueError, match="Unknown padding mode: EDGE"):
        tf.pad([1], [[1, 1]], "EDGE")


def test_gradients() -> None:
    a = A.astype(np.float64)
    assert_derivatives(lambda x: tf.tile(x, [2, 3]) ** 3, a)
    assert_derivatives(lambda x: tf.pad(x, [[1, 0], [2, 1]]) ** 3, a)
    assert_derivatives(lambda x, c: tf.pad(x, [[1, 0], [2, 1]], constant_values=c) ** 3, a, 2.0)
    for mode in ("REFLECT", "SYMMETRIC"):
        assert_derivatives(lambda x, m=mode: tf.pad(x, [[1, 1], [2, 1]], m) ** 3, a)
