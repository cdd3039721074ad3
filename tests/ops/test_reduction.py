"""Reductions, in both tiers, against NumPy and finite differences."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(2)
X = RNG.uniform(0.5, 1.5, (2, 3, 4)) * RNG.choice([-1, 1], (2, 3, 4))
ORACLES = {
    tf.reduce_sum: np.sum,
    tf.reduce_mean: np.mean,
    tf.reduce_prod: np.prod,
    tf.reduce_max: np.max,
    tf.reduce_min: np.min,
    tf.reduce_logsumexp: lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    tf.math.reduce_euclidean_norm: lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    tf.math.reduce_variance: np.var,
    tf.math.reduce_std: np.std,
}
AXES = [None, 0, -1, (0, 2), (-1, 0, 1), ()]


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_values_and_shapes(axis, keepdims):
    given = list(axis) if isinstance(axis, tuple) else axis
    tensors = [f(tf.constant(X), given, keepdims=keepdims) for f in ORACLES]
    values = run_both(tensors, atol=1e-9)
    for oracle, tensor, value in zip(ORACLES.values(), tensors, values, strict=True):
        expected = oracle(X, axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
        assert tensor.shape.as_list() == list(expected.shape)


@pytest.mark.parametrize("function", ORACLES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("axis", [None, 1, [0, 2]], ids=str)
def test_derivatives(function, axis):
    assert_derivatives(
        lambda x: tf.square(function(x, axis)), X, order=2, tolerance=2e-3, delta=1e-5
    )


def test_gradients_of_unknown_shapes():
    x = tf.placeholder(tf.float64, None)
    axes = tf.placeholder(tf.int32, [None])
    grads = [
        tf.gradients(f(x, axes), x)[0]
        for f in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_logsumexp)
    ]
    with session(INTERPRETED) as sess:
        total, mean, largest, softmax = sess.run(grads, {x: X, axes: [0, -1]})
    np.testing.assert_array_equal(total, np.ones_like(X))
    np.testing.assert_allclose(mean, np.full_like(X, 1 / 8))
    np.testing.assert_array_equal(largest, X.max((0, 2), keepdims=True) == X)
    np.testing.assert_allclose(softmax, np.exp(X) / np.exp(X).sum((0, 2), keepdims=True))


def test_equal_extrema_share_the_gradient():
    x = tf.constant([1.0, 3.0, 3.0])
    np.testing.assert_array_equal(run_both(tf.gradients(tf.reduce_max(x), x)[0]), [0, 0.5, 0.5])


def test_product_of_zeros():
    x = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
    t = tf.constant(x)
    grad = run_both(tf.gradients(tf.reduce_prod(t, 1), t)[0])
    np.testing.assert_array_equal(grad, [[0, 2, 0], [0, 0, 0]])


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_sixteen_bit_floats_are_summed_in_float32(kind):
    x = np.full(5000, 1.0).astype(kind)  # would stop at 2048 (256) in its own precision
    total, mean = run_both([tf.reduce_sum(tf.constant(x)), tf.reduce_mean(tf.constant(x))])
    assert total.dtype == mean.dtype == kind
    assert float(mean) == 1.0
    np.testing.assert_allclose(float(total), 5000, rtol=4e-3)


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "uint64"])
def test_integers_keep_their_type(kind):
    x = np.array([[7, 2, 5], [1, 1, 2]], kind)
    t = tf.constant(x)
    values = run_both([f(t, 1) for f in (tf.reduce_sum, tf.reduce_prod, tf.reduce_max)])
    for value, want in zip(values, [[14, 4], [70, 2], [7, 2]], strict=True):
        assert value.dtype == np.dtype(kind)
        np.testing.assert_array_equal(value, want)
    np.testing.assert_array_equal(run_both(tf.reduce_mean(t, 1)), [4, 1])
    if kind == "int32":
        np.testing.assert_array_equal(run_both(tf.reduce_mean(-t, 1)), [-4, -1])  # as in C


def test_empty():
    x = tf.zeros([0, 2])
    values = run_both([f(x, 0) for f in (tf.reduce_sum, tf.reduce_prod, tf.reduce_max)])
    for value, want in zip(values, [0, 1, -np.inf], strict=True):
        np.testing.assert_array_equal(value, [want, want])
    assert run_both(tf.reduce_min(tf.zeros([0], tf.int32))) == 2**31 - 1


def test_logsumexp_does_not_overflow():
    x = tf.constant([[1000.0, 1000.0], [-np.inf, -np.inf], [np.inf, 1.0], [-1000.0, -1000.0]])
    value = run_both(tf.reduce_logsumexp(x, 1))
    np.testing.assert_allclose(value, [1000.6931, -np.inf, np.inf, -999.30685], rtol=1e-6)


def test_logic_and_counts():
    x = np.array([[True, False], [True, True]])
    every, some, count = run_both([tf.reduce_all(x, 1), tf.reduce_any(x), tf.count_nonzero(x, 0)])
    np.testing.assert_array_equal(every, [False, True])
    assert some == np.True_
    np.testing.assert_array_equal(count, [2, 1])
    assert run_both(tf.count_nonzero(tf.constant(["", "a"]))) == 1
    with pytest.raises((TypeError, ValueError), match="bool"):
        tf.reduce_all(tf.constant([1.0]))


def test_mistakes():
    x = tf.zeros([2, 3])
    with pytest.raises(ValueError, match="Invalid reduction dimension 2 for input with 2"):
        tf.reduce_sum(x, 2)
    with pytest.raises(ValueError, match="duplicate"):
        tf.reduce_sum(x, [0, -2])
    with pytest.raises(ValueError, match="both 'axis' and 'reduction_indices'"):
        tf.reduce_sum(x, 0, reduction_indices=1)
    with pytest.raises(ValueError, match="both 'keepdims' and 'keep_dims'"):
        tf.reduce_sum(x, 0, keepdims=True, keep_dims=True)
    unknown, axis = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="5"):
            sess.run(tf.reduce_sum(unknown, axis), {unknown: [1.0], axis: 5})


def test_older_names():
    x = tf.constant(X)
    a, b = run_both([tf.reduce_sum(x, reduction_indices=[1], keep_dims=True), tf.reduce_sum(x, 1)])
    assert a.shape == (2, 1, 4) and b.shape == (2, 4)


# Arguments of extrema, running sums, counts -------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, ml_dtypes.bfloat16, np.int32, np.uint8, np.bool_])
def test_arguments_of_extrema(kind):
    x = RNG.integers(0, 3, (3, 4)).astype(kind)
    t = tf.constant(x)
    values = run_both([tf.argmax(t), tf.argmin(t, 1), tf.argmax(t, -1, output_type=tf.int32)])
    expected = [x.argmax(0), x.argmin(1), x.argmax(1)]
    for value, want, type_ in zip(values, expected, ("int64", "int64", "int32"), strict=True):
        np.testing.assert_array_equal(value, want)
        assert value.dtype == type_


def test_arguments_of_nothing():
    with pytest.raises(ValueError, match="Dimension must be in"):
        tf.argmax(tf.zeros([2]), 1)
    x = tf.placeholder(tf.float32, [None])
    for level in (INTERPRETED, COMPILED):
        with session(level) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="empty"):
            sess.run(tf.argmax(x), {x: []})


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(exclusive, reverse):
    def oracle(function, x, neutral):
        x = x[:, ::-1] if reverse else x
        if exclusive:
            x = np.concatenate([np.full((x.shape[0], 1), neutral), x[:, :-1]], 1)
        out = function(x, 1)
        return out[:, ::-1] if reverse else out

    options = {"exclusive": exclusive, "reverse": reverse}
    x = X[0]
    values = run_both([f(tf.constant(x), 1, **options) for f in (tf.cumsum, tf.cumprod)])
    np.testing.assert_allclose(values[0], oracle(np.cumsum, x, 0.0), rtol=1e-12)
    np.testing.assert_allclose(values[1], oracle(np.cumprod, x, 1.0), rtol=1e-12)
    for function in (tf.cumsum, tf.cumprod):
        assert_derivatives(lambda t, f=function: tf.square(f(t, 1, **options)), x, tolerance=1e-4)


def test_running_sum_of_integers_and_sixteen_bits():
    x = np.array([3, 1, 2], np.int8)
    value = run_both(tf.cumsum(tf.constant(x)))
    assert value.dtype == np.int8
    np.testing.assert_array_equal(value, [3, 4, 6])
    ones = tf.ones([3000], tf.float16)
    assert float(run_both(tf.cumsum(ones))[-1]) == 3000


def test_bincount():
    arr = [1, 1, 3, 0]
    values = run_both(
        [
            *(tf.bincount(arr), tf.bincount(arr, minlength=6), tf.bincount(arr, maxlength=2)),
            *(tf.bincount(arr, weights=[0.5, 1.0, 2.0, 4.0]), tf.bincount([], dtype=tf.int64)),
        ]
    )
    expected = [[1, 2, 0, 1], [1, 2, 0, 1, 0, 0], [1, 2], [4.0, 1.5, 0, 2.0], []]
    for value, want in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, want)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="non-negative"):
        sess.run(tf.bincount([-1]))
