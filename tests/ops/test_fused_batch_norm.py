"""Fused batch normalisation: layouts, types, statistics, derivatives of both modes, errors."""

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives

RNG = np.random.default_rng(0)
SHAPES = {
    "NHWC": (3, 2, 2, 4),
    "NCHW": (3, 4, 2, 2),
    "NDHWC": (2, 2, 2, 2, 4),
    "NCDHW": (2, 4, 2, 2, 2),
}
SCALE = RNG.uniform(0.5, 1.5, 4).astype(np.float32)
OFFSET = RNG.normal(size=4).astype(np.float32)
MEAN = RNG.normal(size=4).astype(np.float32)
VARIANCE = RNG.uniform(0.5, 1.5, 4).astype(np.float32)


def axes_of(layout):
    channel = layout.index("C")
    return tuple(i for i in range(len(layout)) if i != channel)


def column(vector, layout):
    return np.asarray(vector, np.float64).reshape([-1 if c == "C" else 1 for c in layout])


def normalized(x, mean, variance, layout, epsilon=1e-3):
    x = x.astype(np.float64)
    unit = (x - column(mean, layout)) / np.sqrt(column(variance, layout) + epsilon)
    return unit * column(SCALE, layout) + column(OFFSET, layout)


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_training(layout, dtype):
    x = (RNG.normal(size=SHAPES[layout]) * 2 + 1).astype(dtype)
    result = tf.nn.fused_batch_norm(tf.constant(x), SCALE, OFFSET, data_format=layout)
    y, mean, variance = run_both(result, rtol=1e-2, atol=1e-2 if dtype != np.float32 else 1e-5)
    assert (y.dtype, mean.dtype, variance.dtype) == (dtype, np.float32, np.float32)
    wide, axes = x.astype(np.float64), axes_of(layout)
    np.testing.assert_allclose(mean, wide.mean(axes), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, wide.var(axes, ddof=1), rtol=1e-5)
    digits = {np.float16: 4e-3, ml_dtypes.bfloat16: 3e-2}.get(dtype, 1e-5)
    expected = normalized(x, wide.mean(axes), wide.var(axes), layout)
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=digits, atol=digits)


@pytest.mark.parametrize("layout", SHAPES)
def test_inference(layout):
    x = RNG.normal(size=SHAPES[layout]).astype(np.float32)
    y, mean, variance = run_both(
        tf.nn.fused_batch_norm(
            *(x, SCALE, OFFSET, MEAN, VARIANCE), data_format=layout, is_training=False
        )
    )
    np.testing.assert_array_equal(mean, MEAN)
    np.testing.assert_array_equal(variance, VARIANCE)
    np.testing.assert_allclose(y, normalized(x, MEAN, VARIANCE, layout), rtol=1e-5, atol=1e-6)


def test_moving_average():
    x = RNG.normal(size=SHAPES["NHWC"]).astype(np.float32)
    y, mean, variance = run_both(
        tf.nn.fused_batch_norm(x, SCALE, OFFSET, MEAN, VARIANCE, exponential_avg_factor=0.1)
    )
    wide = x.astype(np.float64)
    axes = (0, 1, 2)
    np.testing.assert_allclose(mean, 0.9 * MEAN + 0.1 * wide.mean(axes), rtol=1e-5)
    np.testing.assert_allclose(variance, 0.9 * VARIANCE + 0.1 * wide.var(axes, ddof=1), rtol=1e-5)
    expected = normalized(x, wide.mean(axes), wide.var(axes), "NHWC")
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_a_large_mean_does_not_swallow_the_variance():
    x = (RNG.normal(size=(16, 8, 8, 4)) + 1000).astype(np.float32)
    y, _, variance = run_both(tf.nn.fused_batch_norm(x, SCALE, OFFSET), rtol=1e-3, atol=1e-3)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(variance, wide.var((0, 1, 2), ddof=1), rtol=1e-4)
    expected = normalized(x, wide.mean((0, 1, 2)), wide.var((0, 1, 2)), "NHWC")
    np.testing.assert_allclose(y, expected, atol=1e-3)


def test_one_position_and_none():
    x = tf.placeholder(tf.float32, [None, 1, 1, 4])
    result = tf.nn.fused_batch_norm(x, SCALE, OFFSET)
    y, mean, variance = run_both(result, {x: np.ones((1, 1, 1, 4))})
    np.testing.assert_allclose(y, OFFSET.reshape(1, 1, 1, 4), rtol=1e-6)
    assert variance.tolist() == [0] * 4
    y, mean, variance = run_both(result, {x: np.ones((0, 1, 1, 4))})
    assert y.shape == (0, 1, 1, 4)
    assert np.isnan(mean).all() and np.isnan(variance).all()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_derivatives(layout, training):
    x = RNG.normal(size=(2, 2, 2, 2))

    def build(t, scale, offset):
        statistics = () if training else (MEAN[:2], VARIANCE[:2])
        y = tf.nn.fused_batch_norm(
            t, scale, offset, *statistics, data_format=layout, is_training=training, epsilon=0.1
        )[0]
        return tf.square(y) * tf.constant(RNG_WEIGHTS)

    assert_derivatives(
        build, x, SCALE[:2], OFFSET[:2], dtype=np.float32, delta=2e-2, tolerance=2e-2
    )


RNG_WEIGHTS = np.random.default_rng(4).normal(size=(2, 2, 2, 2)).astype(np.float32)


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_every_version_of_the_op(version):
    x = RNG.normal(size=SHAPES["NCHW"]).astype(np.float32)
    none = np.zeros(0, np.float32)
    inputs = [tf.constant(v) for v in (x, SCALE, OFFSET, none, none)]
    outputs = tf.get_op_def(f"FusedBatchNorm{version}")(*inputs, epsilon=1e-3, data_format="NCHW")
    grads = tf.gradients(outputs[0], inputs[:3], grad_ys=tf.constant(x))
    assert tf.gradients(outputs[0], inputs[3:]) == [None, None]
    y, dx, dscale, doffset = run_both([outputs[0], *grads])
    wide, axes = x.astype(np.float64), (0, 2, 3)
    np.testing.assert_allclose(
        y, normalized(x, wide.mean(axes), wide.var(axes), "NCHW"), rtol=1e-4, atol=1e-5
    )
    # The gradient is x itself here, so sum(dy * xhat) is n * var / deviation.
    deviation = np.sqrt(wide.var(axes) + 1e-3)
    np.testing.assert_allclose(dscale, 12 * wide.var(axes) / deviation, rtol=1e-4)
    np.testing.assert_allclose(doffset, wide.sum(axes), rtol=1e-4, atol=1e-5)
    assert dx.shape == x.shape


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_gradients_of_halves(dtype):
    x = RNG.normal(size=(3, 2, 2, 4)).astype(dtype)
    weight = RNG.normal(size=(3, 2, 2, 4))
    results = []
    for kind in (dtype, np.float32):
        t = tf.constant(x.astype(kind))
        scale, offset = tf.constant(SCALE), tf.constant(OFFSET)
        y = tf.nn.fused_batch_norm(t, scale, offset)[0]
        grads = tf.gradients(y, [t, scale, offset], grad_ys=tf.constant(weight.astype(kind)))
        results.append(run_both(grads, rtol=1e-2, atol=2e-2))
    assert results[0][0].dtype == dtype
    assert results[0][1].dtype == np.float32
    for half, single in zip(*results, strict=True):
        np.testing.assert_allclose(half.astype(np.float64), single, rtol=5e-2, atol=5e-2)


def test_static_shapes():
    x = tf.placeholder(tf.float32, [None, None, None, None])
    y, mean, variance = tf.nn.fused_batch_norm(x, SCALE, OFFSET)
    assert y.shape.as_list() == [None, None, None, 4]
    assert mean.shape.as_list() == variance.shape.as_list() == [4]
    assert y.op.name == "FusedBatchNormV3"
    unknown = tf.nn.fused_batch_norm(tf.placeholder(tf.float32), SCALE, OFFSET, data_format="NCHW")
    assert unknown[0].shape.as_list() == [None, 4, None, None]


def test_mistakes_when_building():
    x = tf.placeholder(tf.float32, [None, 2, 2, 3])
    with pytest.raises(ValueError, match=r"scale must be a vector .* 3 channels .*\(4,\)"):
        tf.nn.fused_batch_norm(x, SCALE, OFFSET)
    with pytest.raises(ValueError, match="rank 4"):
        tf.nn.fused_batch_norm([[1.0]], [1.0], [1.0])
    with pytest.raises(ValueError, match="mean and variance must both be given"):
        tf.nn.fused_batch_norm(x, SCALE[:3], OFFSET[:3], is_training=False)
    with pytest.raises(ValueError, match="one of"):
        tf.nn.fused_batch_norm(x, SCALE[:3], OFFSET[:3], data_format="NWC")


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_mistakes_when_running(level):
    x = tf.placeholder(tf.float32)
    scale = tf.placeholder(tf.float32)
    y = tf.nn.fused_batch_norm(x, scale, tf.zeros_like(scale))[0]
    with session(level) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="scale must be a vector"):
            sess.run(y, {x: np.zeros((1, 2, 2, 3)), scale: np.ones(4)})
        with pytest.raises(tf.errors.InvalidArgumentError, match="rank 4"):
            sess.run(y, {x: np.zeros((1, 3)), scale: np.ones(3)})
