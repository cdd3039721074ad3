"""Pooling as operations: values, shapes, gradients of any order, mistakes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives


def distinct(*shape):
    """Elements that differ by more than any difference quotient's step."""
    values = np.random.default_rng(sum(shape)).permutation(int(np.prod(shape)))
    return values.reshape(shape) / 4 - 2


def evaluate(build, *arrays, **tolerances):
    """What ``build`` gives in both tiers; fed, since an operation on constants is folded."""
    inputs = [tf.placeholder(a.dtype, a.shape) for a in arrays]
    return run_both(build(*inputs), dict(zip(inputs, arrays)), **tolerances)


def pooled(x, reduce, ksize, strides, pads=None):
    """Pooling by definition: NaN stands for the padding."""
    rank = len(ksize)
    x = np.pad(
        x.astype(np.float64),
        [(0, 0), *(pads or [(0, 0)] * rank), (0, 0)],
        constant_values=np.nan,
    )
    view = np.lib.stride_tricks.sliding_window_view(x, ksize, tuple(range(1, rank + 1)))
    stops = view[(slice(None), *(slice(None, None, s) for s in strides))]
    return reduce(stops, tuple(range(-rank, 0)))


X = distinct(2, 7, 6, 3)
SAME = [(1, 1), (0, 1)]
POOLS = [(tf.nn.max_pool, np.nanmax), (tf.nn.avg_pool, np.nanmean)]
BOTH = pytest.mark.parametrize(("pool", "reduce"), POOLS, ids=["max", "avg"])


@BOTH
@pytest.mark.parametrize(
    ("ksize", "strides", "padding", "pads"),
    [
        (2, 2, "VALID", None),
        ([3, 2], [2, 3], "SAME", [(1, 1), (0, 0)]),
        ([1, 3, 2, 1], 1, "SAME", SAME),
        ([7, 6], 1, "VALID", None),
        (1, 2, "VALID", None),
    ],
)
def test_images(pool, reduce, ksize, strides, padding, pads):
    value = evaluate(lambda x: pool(x, ksize, strides, padding), X)
    window = {2: (2, 2), 1: (1, 1)}.get(ksize) if isinstance(ksize, int) else tuple(ksize)
    window = window[1:3] if len(window) == 4 else window
    steps = (strides, strides) if isinstance(strides, int) else strides
    np.testing.assert_allclose(value, pooled(X, reduce, window, steps, pads), rtol=1e-12)
    assert pool(X, ksize, strides, padding).shape == value.shape


def test_explicit_padding():
    images, sequences = evaluate(
        lambda x, s: [
            tf.nn.max_pool(x, 3, 2, [[0, 0], [1, 2], [2, 0], [0, 0]]),
            tf.nn.max_pool1d(s, 2, 2, [[0, 0], [1, 0], [0, 0]]),
        ],
        X,
        X[0],
    )
    np.testing.assert_array_equal(images, pooled(X, np.nanmax, (3, 3), (2, 2), [(1, 2), (2, 0)]))
    np.testing.assert_array_equal(sequences, pooled(X[0], np.nanmax, (2,), (2,), [(1, 0)]))


@BOTH
def test_channels_first(pool, reduce):
    x = tf.placeholder(tf.float64, X.shape)
    last = pool(x, [1, 3, 2, 1], [1, 2, 1, 1], "SAME")
    first = pool(
        tf.transpose(x, [0, 3, 1, 2]), [1, 1, 3, 2], [1, 1, 2, 1], "SAME", data_format="NCHW"
    )
    gradients = [tf.gradients(tf.square(t), x)[0] for t in (last, first)]
    a, b, da, db = run_both([last, tf.transpose(first, [0, 2, 3, 1]), *gradients], {x: X})
    np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(da, db, rtol=1e-12)


def test_sequences_and_volumes():
    s, v = distinct(2, 9, 3), distinct(1, 4, 5, 3, 2).astype(np.float32)
    values = evaluate(
        lambda s, v: [
            tf.nn.max_pool1d(s, 3, 2, "VALID"),
            tf.nn.avg_pool1d(s, 3, 2, "VALID"),
            tf.nn.max_pool3d(v, 2, 1, "VALID"),
            tf.nn.avg_pool3d(v, 2, 1, "VALID"),
            tf.nn.pool(s, [2], "MAX", "VALID", dilation_rate=[3]),
        ],
        *(s, v),
    )
    expected = [
        pooled(s, np.nanmax, (3,), (2,)),
        pooled(s, np.nanmean, (3,), (2,)),
        pooled(v, np.nanmax, (2, 2, 2), (1, 1, 1)),
        pooled(v, np.nanmean, (2, 2, 2), (1, 1, 1)),
        np.maximum(s[:, :-3], s[:, 3:]),
    ]
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_floating_point_types(dtype):
    x = X.astype(dtype)

    def build(x):
        pools = [tf.nn.max_pool(x, 3, 2, "SAME"), tf.nn.avg_pool(x, 3, 2, "SAME")]
        return pools + [tf.gradients(y, x)[0] for y in pools]

    digits = {np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}.get(dtype, 1e-6)
    values = evaluate(build, x, rtol=digits)
    assert all(value.dtype == dtype for value in values)
    pads = [(1, 1), (0, 1)]
    for value, reduce in zip(values, (np.nanmax, np.nanmean)):
        expected = pooled(x, reduce, (3, 3), (2, 2), pads)
        np.testing.assert_allclose(value.astype(np.float64), expected, rtol=digits, atol=digits)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64])
def test_maxima_of_integers(dtype):
    x = (X * 4 + 8).astype(np.uint8).astype(dtype)
    y = evaluate(lambda x: tf.nn.max_pool(x, 3, 2, "SAME"), x)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, pooled(x, np.nanmax, (3, 3), (2, 2), [(1, 1), (0, 1)]))


def test_gradients_of_ties_go_to_the_first():
    x = np.ones((1, 2, 3, 1))
    grad = evaluate(lambda x: tf.gradients(tf.nn.max_pool(x, 2, 1, "VALID"), x)[0], x)
    assert grad.ravel().tolist() == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.nn.max_pool(x, 2, 1, "SAME"),
        lambda x: tf.nn.max_pool(x, 2, 2, [[0, 0], [1, 0], [0, 1], [0, 0]]),
        lambda x: tf.nn.max_pool_with_argmax(x, 2, 1, "SAME").output,
        lambda x: tf.get_op_def("MaxPoolV2")(x, [1, 2, 2, 1], [1, 1, 1, 1], padding="SAME"),
        lambda x: tf.nn.avg_pool(x, 2, 2, "SAME"),
        lambda x: tf.nn.avg_pool(x, [3, 2], 1, "VALID"),
        lambda x: tf.nn.avg_pool3d(x[:, None], [1, 2, 2], 1, "VALID"),
        lambda x: tf.nn.pool(x, [2, 2], "AVG", "VALID", dilation_rate=[2, 1]),
    ],
    ids=["max", "explicit", "argmax", "tensors", "avg", "avg valid", "avg3d", "dilated"],
)
def test_derivatives(build):
    # A square has a second derivative, and a cube a third.
    assert_derivatives(lambda x: build(x) ** 3 / 9, distinct(1, 4, 3, 1), order=3, tolerance=1e-4)


def test_derivatives_of_max_pool3d():
    x = distinct(1, 2, 3, 2, 1)
    assert_derivatives(
        lambda x: tf.nn.max_pool3d(x, 2, 1, "SAME") ** 2,
        x,
        dtype=np.float32,
        delta=0.1,
        tolerance=1e-3,
    )


def test_argmax():
    x = np.array([[1, 5, 2], [5, 0, 7]], np.float32).reshape(1, 2, 3, 1)
    both = np.concatenate([x, -x])
    values, places, all_places = evaluate(
        lambda x: [
            *tf.nn.max_pool_with_argmax(x, 2, 1, "VALID"),
            tf.nn.max_pool_with_argmax(
                x, 2, 1, "VALID", output_dtype=tf.int32, include_batch_in_index=True
            ).argmax,
        ],
        both,
    )
    assert values.ravel().tolist() == [5, 7, 0, 0]
    assert places.ravel().tolist() == [1, 5, 4, 4] and places.dtype == np.int64
    assert all_places.ravel().tolist() == [1, 5, 10, 10] and all_places.dtype == np.int32


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_places_outside_of_the_image_are_refused(level):
    grad_op = tf.get_op_def("MaxPoolGradWithArgmax")
    at = tf.placeholder(tf.int64, [1, 1, 1, 1])
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    y = grad_op(tf.zeros([1, 2, 2, 1]), tf.ones([1, 1, 1, 1]), at, **window)
    with session(level) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"argmax must be within \[0, 4\)"):
            sess.run(y, {at: [[[[4]]]]})
        assert sess.run(y, {at: [[[[3]]]]}).ravel().tolist() == [0, 0, 0, 1]


@BOTH
def test_a_batch_and_images_of_any_size(pool, reduce):
    x = tf.placeholder(tf.float64, [None, None, 6, 3])
    y = pool(x, 2, 2, "SAME")
    grad = tf.gradients(y, x)[0]
    assert y.shape.as_list() == [None, None, 3, 3]
    assert grad.shape.as_list() == [None, None, 6, 3]
    with session(COMPILED) as sess:
        for batch, height in ((2, 7), (1, 4)):
            value, slope = sess.run([y, grad], {x: X[:batch, :height]})
            assert value.shape == (batch, -(-height // 2), 3, 3)
            assert slope.shape == (batch, height, 6, 3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: tf.nn.max_pool(x, 9, 1, "VALID"), "a window of 9 does not fit into an axis of"),
        (lambda x: tf.nn.max_pool(x, [1, 2, 2, 2], 1, "VALID"), "ksize must be 1 along the batch"),
        (lambda x: tf.nn.max_pool(x, 0, 1, "VALID"), "ksize must be 4 positive numbers"),
        (lambda x: tf.nn.avg_pool(x, 2, [2, 1, 1, 1], "VALID"), "strides must be 1 along the"),
        (lambda x: tf.nn.avg_pool(x, 2, 2, "FULL"), "'padding' is 'FULL', but must be one of"),
        (lambda x: tf.nn.avg_pool(x, 2, 2, [[0, 0]] * 4), "avg_pool takes no list of paddings"),
        (lambda x: tf.nn.max_pool(x[0], 2, 2, "SAME"), "the input must have 4 dimensions"),
        (
            lambda x: tf.nn.max_pool(x, 2, 2, [[0, 0], [2, 0], [0, 0], [0, 0]]),
            "explicit_paddings must be smaller than the window",
        ),
        (
            lambda x: tf.nn.max_pool(x, 2, 2, "SAME", data_format="NWHC"),
            "data_format must be NHWC or NCHW",
        ),
        (lambda x: tf.nn.max_pool(x, 2, 2, "SAME", input=x), "Cannot specify both 'input' and"),
        (lambda x: tf.nn.pool(x, [2, 2], "SUM", "SAME"), "pooling_type must be 'MAX' or 'AVG'"),
        (
            lambda x: tf.nn.pool(x, [2, 2], "MAX", "SAME", dilation_rate=[2, 2]),
            "padding 'SAME' needs a dilation_rate of 1",
        ),
        (
            lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", data_format="NCHW"),
            "data_format must be NHWC",
        ),
        (lambda x: tf.nn.max_pool_v2(x[0, 0], 2, 2, "SAME"), "3, 4 or 5 dimensions"),
        (
            lambda x: tf.get_op_def("MaxPool")(
                x, ksize=[1] * 4, strides=[1] * 4, padding="SAME", data_format="NCHW_VECT_C"
            ),
            "NCHW_VECT_C is for quantized kernels",
        ),
    ],
)
def test_mistakes_are_found_while_building(build, message):
    with pytest.raises(ValueError, match=message):
        build(tf.constant(X))


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_mistakes_of_a_step_name_the_operation(level):
    x = tf.placeholder(tf.float32)
    y = tf.nn.avg_pool(x, 3, 1, "VALID", name="layer")
    with session(level) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit") as info:
            sess.run(y, {x: np.zeros((1, 2, 8, 3))})
        assert info.value.op.name == "layer"
        assert sess.run(y, {x: np.ones((1, 3, 3, 2))}).tolist() == [[[[1, 1]]]]
