"""Convolutions, poolings and their gradients against TensorFlow's kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from runnel.ops.convolution import conv_lowering, pool_lowering

tf = pytest.importorskip("tensorflow")

TIERS = pytest.mark.parametrize("xp", [np, jnp], ids=["interpreted", "compiled"])
EXPLICIT = [0, 0, 1, 2, 0, 1, 0, 0]


@pytest.fixture(autouse=True)
def _reference_session():
    # Other files' tests, in the same process, disable TensorFlow's eager execution.
    with tf.Graph().as_default(), tf.compat.v1.Session():
        yield


def random(*shape, dtype=np.float32):
    shape = [int(size) for size in shape]
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


def run(xp, function, *arrays):
    """Call `function` at once under NumPy, compiled under JAX."""
    return np.asarray(function(*arrays) if xp is np else jax.jit(function)(*arrays))


def assert_same(ours, theirs, tolerance=1e-6):
    theirs = theirs.eval()
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(
        ours.astype(np.float64), theirs.astype(np.float64), rtol=tolerance, atol=tolerance
    )


@TIERS
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
@pytest.mark.parametrize(
    ("padding", "explicit", "strides", "dilations"),
    [
        ("SAME", [], [1, 1, 1, 1], [1, 1, 1, 1]),
        ("SAME", [], [1, 2, 2, 1], [1, 1, 1, 1]),
        ("SAME", [], [1, 1, 1, 1], [1, 2, 3, 1]),
        ("VALID", [], [1, 2, 3, 1], [1, 1, 1, 1]),
        ("EXPLICIT", EXPLICIT, [1, 2, 1, 1], [1, 1, 1, 1]),
    ],
)
def test_conv2d(xp, padding, explicit, strides, dilations, dtype):
    attributes = dict(
        padding=padding, explicit_paddings=explicit, strides=strides, dilations=dilations
    )
    x, filter = random(2, 9, 8, 4, dtype=dtype), random(3, 2, 4, 6, dtype=dtype)
    with jax.enable_x64(dtype is np.float64):
        ours = run(xp, lambda x, w: conv_lowering.conv2d(xp, x, w, **attributes), x, filter)
    theirs = tf.raw_ops.Conv2D(input=x, filter=filter, **attributes)
    assert_same(ours, theirs)


@TIERS
@pytest.mark.parametrize("padding", ["SAME", "VALID", "EXPLICIT"])
@pytest.mark.parametrize("strides", [[1, 1, 1, 1], [1, 2, 2, 1]])
@pytest.mark.parametrize("window", [(1, 1), (3, 2)])
def test_conv2d_backprops(xp, padding, strides, window):
    explicit = EXPLICIT if padding == "EXPLICIT" else []
    attributes = dict(padding=padding, strides=strides, explicit_paddings=explicit)
    x, filter = random(2, 9, 8, 4), random(*window, 4, 6)
    y = tf.raw_ops.Conv2D(input=x, filter=filter, **attributes)
    dy = random(*y.shape)
    assert_same(
        run(
            xp,
            lambda x, dy: conv_lowering.conv2d_backprop_filter(
                xp, x, filter.shape, dy, **attributes
            ),
            x,
            dy,
        ),
        tf.raw_ops.Conv2DBackpropFilter(
            input=x, filter_sizes=filter.shape, out_backprop=dy, **attributes
        ),
    )
    assert_same(
        run(
            xp,
            lambda w, dy: conv_lowering.conv2d_backprop_input(xp, x.shape, w, dy, **attributes),
            filter,
            dy,
        ),
        tf.raw_ops.Conv2DBackpropInput(
            input_sizes=x.shape, filter=filter, out_backprop=dy, **attributes
        ),
    )


@TIERS
def test_groups_are_inferred_from_the_filter(xp):
    x, filter = random(2, 6, 7, 6), random(3, 3, 2, 9)
    attributes = dict(padding="SAME", strides=[1, 1, 1, 1])
    ours = run(xp, lambda x, w: conv_lowering.conv2d(xp, x, w, **attributes), x, filter)
    assert_same(ours, tf.raw_ops.Conv2D(input=x, filter=filter, **attributes))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_sizes_around_the_window_s(padding, window, stride):
    attributes = dict(padding=padding, strides=[1, stride, stride, 1])
    for size in range(4):
        x, filter = random(1, size, 8, 1), random(window, 1, 1, 1)
        with tf.Graph().as_default():
            try:
                theirs = tf.raw_ops.Conv2D(input=x, filter=filter, **attributes).shape
            except ValueError:
                theirs = None
        if theirs is None:
            with pytest.raises(ValueError, match=f"does not fit into an axis of {size}"):
                conv_lowering.conv2d(np, x, filter, **attributes)
        else:
            assert conv_lowering.conv2d(np, x, filter, **attributes).shape == tuple(theirs)


@TIERS
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise(xp, padding, multiplier, stride):
    attributes = dict(padding=padding, strides=[1, stride, stride, 1])
    x, filter = random(2, 9, 8, 4), random(3, 2, 4, multiplier)
    y = tf.raw_ops.DepthwiseConv2dNative(input=x, filter=filter, **attributes)
    dy = random(*y.shape)
    lower = conv_lowering.depthwise_conv2d_native
    assert_same(run(xp, lambda x, w: lower(xp, x, w, **attributes), x, filter), y)
    lower = conv_lowering.depthwise_conv2d_native_backprop_filter
    assert_same(
        run(xp, lambda x, dy: lower(xp, x, filter.shape, dy, **attributes), x, dy),
        tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
            input=x, filter_sizes=filter.shape, out_backprop=dy, **attributes
        ),
    )
    lower = conv_lowering.depthwise_conv2d_native_backprop_input
    assert_same(
        run(xp, lambda w, dy: lower(xp, x.shape, w, dy, **attributes), filter, dy),
        tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
            input_sizes=x.shape, filter=filter, out_backprop=dy, **attributes
        ),
    )


@TIERS
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv3d(xp, padding):
    attributes = dict(padding=padding, strides=[1, 2, 1, 2, 1])
    x, filter = random(2, 5, 6, 5, 3), random(2, 3, 2, 3, 4)
    y = tf.raw_ops.Conv3D(input=x, filter=filter, **attributes)
    dy = random(*y.shape)
    assert_same(run(xp, lambda x, w: conv_lowering.conv3d(xp, x, w, **attributes), x, filter), y)
    lower = conv_lowering.conv3d_backprop_filter
    assert_same(
        run(xp, lambda x, dy: lower(xp, x, filter.shape, dy, **attributes), x, dy),
        tf.raw_ops.Conv3DBackpropFilterV2(
            input=x, filter_sizes=filter.shape, out_backprop=dy, **attributes
        ),
    )
    lower = conv_lowering.conv3d_backprop_input
    assert_same(
        run(xp, lambda w, dy: lower(xp, x.shape, w, dy, **attributes), filter, dy),
        tf.raw_ops.Conv3DBackpropInputV2(
            input_sizes=x.shape, filter=filter, out_backprop=dy, **attributes
        ),
    )


@TIERS
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("ksize", "strides"),
    [
        ([1, 3, 3, 1], [1, 2, 2, 1]),
        ([1, 2, 2, 1], [1, 2, 2, 1]),
        ([1, 3, 2, 1], [1, 1, 1, 1]),
    ],
)
def test_pooling_with_ties(xp, padding, ksize, strides, dtype):
    attributes = dict(padding=padding, ksize=ksize, strides=strides)
    tolerance = 2e-3 if dtype is np.float16 else 1e-6  # TensorFlow adds float16 in float16
    x = random(2, 9, 8, 3, dtype=dtype)
    with jax.enable_x64(dtype is np.float64):
        y = tf.raw_ops.MaxPool(input=tf.constant(x), **attributes)
        dy = random(*y.shape, dtype=dtype)
        assert_same(run(xp, lambda x: pool_lowering.max_pool(xp, x, **attributes), x), y)
        assert_same(
            run(
                xp,
                lambda x, dy: pool_lowering.max_pool_grad(xp, x, y.eval(), dy, **attributes),
                x,
                dy,
            ),
            tf.raw_ops.MaxPoolGrad(orig_input=tf.constant(x), orig_output=y, grad=dy, **attributes),
        )
        assert_same(
            run(
                xp,
                lambda x: pool_lowering.max_pool_grad_grad(xp, x, y.eval(), x, **attributes),
                x,
            ),
            tf.raw_ops.MaxPoolGradGrad(
                orig_input=tf.constant(x), orig_output=y, grad=tf.constant(x), **attributes
            ),
        )
        assert_same(
            run(xp, lambda x: pool_lowering.avg_pool(xp, x, **attributes), x),
            tf.raw_ops.AvgPool(value=tf.constant(x), **attributes),
            tolerance,
        )
        assert_same(
            run(xp, lambda dy: pool_lowering.avg_pool_grad(xp, x.shape, dy, **attributes), dy),
            tf.raw_ops.AvgPoolGrad(orig_input_shape=x.shape, grad=tf.constant(dy), **attributes),
            tolerance,
        )


@TIERS
def test_explicit_max_pooling(xp):
    x = random(2, 7, 8, 3)
    attributes = dict(
        ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding="EXPLICIT", explicit_paddings=EXPLICIT
    )
    y = tf.raw_ops.MaxPool(input=x, **attributes)
    assert_same(run(xp, lambda x: pool_lowering.max_pool(xp, x, **attributes), x), y)
    dy = random(*y.shape)
    assert_same(
        run(
            xp,
            lambda x, dy: pool_lowering.max_pool_grad(xp, x, y.eval(), dy, **attributes),
            x,
            dy,
        ),
        tf.raw_ops.MaxPoolGrad(orig_input=tf.constant(x), orig_output=y, grad=dy, **attributes),
    )


@TIERS
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pooling_of_volumes(xp, padding):
    # No ties: of those, TensorFlow's 3-D gradient on a CPU feeds every one, its 2-D the first.
    x = np.random.default_rng(0).permutation(900).reshape(2, 5, 6, 5, 3).astype(np.float32)
    attributes = dict(ksize=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding=padding)
    y = tf.raw_ops.MaxPool3D(input=x, **attributes)
    dy = random(*y.shape)
    assert_same(run(xp, lambda x: pool_lowering.max_pool(xp, x, **attributes), x), y)
    assert_same(
        run(xp, lambda x: pool_lowering.avg_pool(xp, x, **attributes), x),
        tf.raw_ops.AvgPool3D(input=x, **attributes),
    )
    assert_same(
        run(xp, lambda dy: pool_lowering.avg_pool_grad(xp, x.shape, dy, **attributes), dy),
        tf.raw_ops.AvgPool3DGrad(orig_input_shape=x.shape, grad=dy, **attributes),
    )
    assert_same(
        run(
            xp,
            lambda x, dy: pool_lowering.max_pool_grad(xp, x, y.eval(), dy, **attributes),
            x,
            dy,
        ),
        tf.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=dy, **attributes),
    )
