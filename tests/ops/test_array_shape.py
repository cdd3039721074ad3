from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives


def test_a_known_shape_is_a_constant_and_an_unknown_one_is_found_at_run_time() -> None:
    known = tf.shape(tf.placeholder(tf.float32, [2, 3]))
    assert known.op.type == "Const"
    x = tf.placeholder(tf.float32)
    result = run_both([tf.shape(x), tf.size(x), tf.rank(x)], {x: np.zeros((4, 5), np.float32)})
    np.testing.assert_array_equal(result[0], [4, 5])
    assert result[1:] == [20, 2]


def test_shapes_of_64_bits() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    assert tf.shape(x, out_type=tf.int64).dtype == tf.int64
    assert tf.size(x, out_type=tf.int64).dtype == tf.int64


def test_shape_does_not_compute_its_input() -> None:
    x = tf.placeholder(tf.float32, [None])
    np.testing.assert_array_equal(run_both(tf.shape(tf.sqrt(x)), {x: np.ones(5, np.float32)}), [5])


@pytest.mark.parametrize(
    ("given", "wanted", "static"),
    [
        ((2, 6), [3, 4], (3, 4)),
        ((2, 6), [-1, 4], (3, 4)),
        ((None, 6), [-1, 4], (None, 4)),
        ((0, 6), [-1, 6], (0, 6)),
        ((), [1, 1], (1, 1)),
    ],
)
def test_static_shape_of_reshape(given, wanted, static) -> None:
    assert tf.reshape(tf.placeholder(tf.float32, given), wanted).dims == static


def test_reshape_takes_dimensions_of_other_shapes() -> None:
    x = tf.placeholder(tf.float32, [4, None])
    y = tf.reshape(x, [x.shape[0], -1, 1])
    assert y.dims == (4, None, 1)
    assert run_both(y, {x: np.zeros((4, 2), np.float32)}).shape == (4, 2, 1)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([4, 2], "6 elements to"),
        ([-1, 4], "no size in place of -1"),
        ([-1, -1], "Only one dimension"),
        ([-2, 3], "at least 0"),
    ],
)
def test_impossible_reshapes_name_the_shapes(wanted, message) -> None:
    with pytest.raises(ValueError, match=message):
        tf.reshape(tf.zeros([2, 3]), wanted)
    x = tf.placeholder(tf.float32)
    y = tf.reshape(x, wanted)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match=message):
            sess.run(y, {x: np.zeros((2, 3), np.float32)})


def test_expand_dims_and_squeeze_mistakes() -> None:
    x = tf.zeros([2, 1])
    with pytest.raises(ValueError, match=r"axis 3 is not in \[-3, 3\)"):
        tf.expand_dims(x, 3)
    with pytest.raises(ValueError, match="Cannot squeeze dimension 0 of size 2"):
        tf.squeeze(x, [0])
    with pytest.raises(ValueError, match="both"):
        tf.squeeze(x, [1], squeeze_dims=[1])
    with pytest.raises(ValueError, match="Must specify an axis"):
        tf.expand_dims(x)
    assert tf.squeeze(x, squeeze_dims=1).dims == (2,)
    assert tf.expand_dims(x, dim=0).dims == (1, 2, 1)


def test_a_dimension_that_data_decides_follows_from_the_number_of_elements() -> None:
    n = tf.placeholder(tf.int32, [])
    assert tf.reshape(tf.ones([4, 6]), [n, 8]).dims == (3, 8)
    assert tf.reshape(tf.ones([4, 6]), [n, n]).dims == (None, None)
    assert tf.reshape(tf.ones([4, 6]), [n, 5]).dims == (None, 5)
    assert tf.reshape(tf.ones([0, 6]), [n, 6]).dims == (0, 6)


def test_squeeze_of_a_size_that_is_not_one_fails_at_run_time() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.squeeze(x, [0])
    assert y.dims == (3,)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="of size 2"):
        sess.run(y, {x: np.zeros((2, 3), np.float32)})


def test_ensure_shape() -> None:
    x = tf.placeholder(tf.float32)
    y = tf.ensure_shape(x, [None, 3])
    assert y.dims == (None, 3)
    assert run_both(y, {x: np.zeros((2, 3), np.float32)}).shape == (2, 3)
    for level in (INTERPRETED, COMPILED):
        with (
            session(level) as sess,
            pytest.raises(tf.errors.InvalidArgumentError, match="expected"),
        ):
            sess.run(y, {x: np.zeros((2, 4), np.float32)})


def test_gradients() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert_derivatives(lambda x: tf.reshape(x, [3, 2]) ** 3, x)
    assert_derivatives(lambda x: tf.squeeze(tf.expand_dims(x, 1), [1]) ** 3, x)


def test_shape_of_slices_is_that_of_the_whole() -> None:
    slices = tf.IndexedSlices(tf.zeros([2, 3]), tf.constant([0, 4]), tf.constant([5, 3]))
    np.testing.assert_array_equal(run_both(tf.shape(slices)), [5, 3])
