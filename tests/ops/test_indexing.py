from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnel as tf
from runnel.runtime.compile import compiler
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

A = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


@st.composite
def keys(draw):
    """Indices that NumPy accepts for a (3, 4, 5) array."""
    entries = []
    for size in A.shape[: draw(st.integers(0, 3))]:
        bound = st.none() | st.integers(-size - 2, size + 2)
        entries.append(
            draw(
                st.integers(-size, size - 1)
                | st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, 3, -1, -2]))
            )
        )
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), None)
    if draw(st.booleans()) and len(entries) < 3:
        entries.append(Ellipsis)
    return tuple(entries)


@settings(max_examples=60, deadline=None)
@given(keys())
def test_indexing_is_as_numpys(key) -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, A.shape)
        y = x[key]
        expected = A[key]
        assert y.dims == expected.shape
        (grad,) = tf.gradients(y * y, x)
        spread = np.zeros_like(A)
        spread[key] = 2 * expected
        with session(INTERPRETED) as sess:
            value, slope = sess.run([y, grad], {x: A})
        np.testing.assert_array_equal(value, expected)
        np.testing.assert_array_equal(slope, spread)


@pytest.mark.parametrize(
    "key",
    [np.s_[1], np.s_[-1, 1:], np.s_[..., ::-2], np.s_[None, 2, ..., 1], np.s_[:, 3:1], np.s_[::-1]],
)
def test_both_tiers_agree_with_gradients_of_unknown_shape(key) -> None:
    x = tf.placeholder(tf.float32, [None, None, 5])
    y = x[key]
    value, slope = run_both([y, tf.gradients(y * y, x)[0]], {x: A})
    np.testing.assert_array_equal(value, A[key])
    spread = np.zeros_like(A)
    spread[key] = 2 * A[key]
    np.testing.assert_array_equal(slope, spread)


def test_a_tensor_as_index_compiles_once_for_all_places() -> None:
    x, i = tf.placeholder(tf.float32, A.shape), tf.placeholder(tf.int32, [])
    fetches = [x[i], x[:, i], x[1:, i, 2:4], x[i, ..., -1], x[0, i, None]]
    fetches.append(tf.gradients(x[i] * x[i], x)[0])
    with session(COMPILED) as sess:
        before = compiler.compilations
        for place in (0, 1, 2, -1):
            got = sess.run(fetches, {x: A, i: place})
            spread = np.zeros_like(A)
            spread[place] = 2 * A[place]
            wanted = [
                A[place],
                A[:, place],
                A[1:, place, 2:4],
                A[place, ..., -1],
                A[0, place, None],
            ]
            for a, b in zip(got, [*wanted, spread], strict=True):
                np.testing.assert_array_equal(a, b)
        assert compiler.compilations == before + 1


def test_bounds_from_tensors() -> None:
    x, i = tf.placeholder(tf.float32, A.shape), tf.placeholder(tf.int64, [])
    got = run_both([x[:i], x[0, i:], x[..., i : i + 2], x[:: tf.constant(2)]], {x: A, i: 1})
    for a, b in zip(got, [A[:1], A[0, 1:], A[..., 1:3], A[::2]], strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_index_out_of_range() -> None:
    message = "slice index 7 of dimension 1 out of bounds"
    with pytest.raises(ValueError, match=message):
        tf.zeros([3, 4])[0, 7]
    x, i = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [])
    for y in (x[0, i], x[0, 7]):
        for level in (INTERPRETED, COMPILED):
            with (
                session(level) as sess,
                pytest.raises(tf.errors.InvalidArgumentError, match=message),
            ):
                sess.run(y, {x: A, i: 7})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (np.s_[0, 0, 0], "Too many indices"),
        (np.s_[..., 0, ...], "Multiple ellipses"),
        (np.s_[::0], "must be non-zero"),
    ],
)
def test_impossible_indices(key, message) -> None:
    with pytest.raises(ValueError, match=message):
        tf.zeros([3, 4])[key]


@pytest.mark.parametrize("key", [1.5, "a", True, (0, False)])
def test_what_is_no_index(key) -> None:
    with pytest.raises(TypeError, match="valid indices"):
        tf.zeros([3, 4])[key]


def test_tensors_that_are_no_index() -> None:
    with pytest.raises(TypeError, match="use tf.gather"):
        tf.zeros([3])[tf.constant([0, 1])]
    with pytest.raises(TypeError, match="must be an integer"):
        tf.zeros([3])[tf.constant(1.0)]


def test_masks_select() -> None:
    x = tf.placeholder(tf.float32, [3])
    got = run_both([x[x > 1.5], x[np.array([True, False, True])]], {x: [1.0, 2.0, 3.0]})
    assert [g.tolist() for g in got] == [[2, 3], [1, 3]]


def test_dimensions_and_numpy_integers_are_integers() -> None:
    x = tf.placeholder(tf.float32, A.shape)
    assert x[: tf.Dimension(2), np.int64(1)].dims == (2, 5)


def test_second_derivatives() -> None:
    x = np.linspace(0.1, 1.0, 12).reshape(3, 4)
    assert_derivatives(lambda x: x[::2, -1:0:-1] ** 3, x)
    assert_derivatives(lambda x: x[tf.constant(1) * 2] ** 3, x)
