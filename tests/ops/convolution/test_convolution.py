"""Convolutions as operations: values, shapes, gradients of any order, mistakes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, run_both, session
from tests.finite_differences import assert_derivatives


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def evaluate(build, *arrays, **tolerances):
    """What ``build`` gives in both tiers; fed, since an operation on constants is folded."""
    inputs = [tf.placeholder(a.dtype, a.shape) for a in arrays]
    return run_both(build(*inputs), dict(zip(inputs, arrays)), **tolerances)


def windows(x, window, strides, pads, dilations):
    """What the window sees: (batch, *stops, *window, channels)."""
    rank = len(window)
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    extents = [(k - 1) * d + 1 for k, d in zip(window, dilations)]
    view = np.lib.stride_tricks.sliding_window_view(padded, extents, tuple(range(1, rank + 1)))
    steps = tuple(slice(None, None, s) for s in strides)
    taps = tuple(slice(None, None, d) for d in dilations)
    return np.moveaxis(view[(slice(None), *steps, slice(None), *taps)], rank + 1, -1)


def convolved(x, w, strides=(1, 1), pads=((0, 0), (0, 0)), dilations=(1, 1), groups=1):
    """The convolution by definition, in float64."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    rank = len(strides)
    parts = [
        np.tensordot(windows(a, w.shape[:rank], strides, pads, dilations), b, rank + 1)
        for a, b in zip(np.split(x, groups, -1), np.split(w, groups, -1))
    ]
    return np.concatenate(parts, -1)


X, W = normal(2, 6, 5, 4), normal(3, 2, 4, 6)
SAME = ((1, 1), (0, 1))
EXPLICIT = [[0, 0], [1, 2], [3, 0], [0, 0]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"padding": "VALID"}, {}),
        ({"padding": "SAME"}, {"pads": SAME}),
        ({"strides": [1, 2, 3, 1], "padding": "VALID"}, {"strides": (2, 3)}),
        ({"padding": EXPLICIT, "strides": 2}, {"pads": ((1, 2), (3, 0)), "strides": (2, 2)}),
        ({"padding": "VALID", "dilations": [2, 3]}, {"dilations": (2, 3)}),
    ],
    ids=["valid", "same", "strided", "explicit", "dilated"],
)
def test_conv2d(arguments, expected):
    arguments = {"strides": 1, **arguments}
    value = evaluate(lambda x, w: tf.nn.conv2d(x, w, **arguments), X, W)
    np.testing.assert_allclose(value, convolved(X, W, **expected), rtol=1e-9)
    assert tf.nn.conv2d(X, W, **arguments).shape == value.shape


def test_channels_first():
    def first(arguments):
        for name in ("strides", "dilations", "padding"):
            if isinstance(arguments.get(name), list):
                n, h, w, c = arguments[name]
                arguments = arguments | {name: [n, c, h, w]}
        return arguments | {"data_format": "NCHW"}

    x = tf.placeholder(tf.float64, X.shape)
    pairs = []
    for arguments in (
        {"strides": [1, 2, 1, 1], "padding": "SAME"},
        {"strides": [1, 1, 1, 1], "padding": EXPLICIT, "dilations": [1, 1, 2, 1]},
    ):
        for convolve, filter in ((tf.nn.conv2d, W), (tf.nn.depthwise_conv2d_native, W[..., :2])):
            last = convolve(x, filter, **arguments)
            other = convolve(tf.transpose(x, [0, 3, 1, 2]), filter, **first(arguments))
            assert other.shape.as_list() == [last.shape.as_list()[i] for i in (0, 3, 1, 2)]
            pairs.append((last, tf.transpose(other, [0, 2, 3, 1])))
    for a, b in run_both(pairs, {x: X}):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_groups():
    w = normal(3, 2, 2, 6)
    y = evaluate(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), X, w)
    np.testing.assert_allclose(y, convolved(X, w, pads=SAME, groups=2), rtol=1e-9)


def test_depthwise():
    w = normal(3, 2, 4, 2)
    y, separable = evaluate(
        lambda x, w, p: [
            tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
            tf.nn.separable_conv2d(x, w, p, [1, 1, 1, 1], "SAME"),
        ],
        X,
        w,
        normal(1, 1, 8, 3),
    )
    expected = convolved(X, w.reshape(3, 2, 1, 8), pads=SAME, groups=4)
    np.testing.assert_allclose(y, expected, rtol=1e-9)
    np.testing.assert_allclose(separable, expected @ normal(1, 1, 8, 3)[0, 0], rtol=1e-9)


def test_conv3d_and_conv1d():
    x, w = normal(2, 4, 5, 3, 2), normal(2, 3, 1, 2, 3)
    s, v = normal(2, 9, 4), normal(3, 4, 5)
    volumes, sequences = evaluate(
        lambda x, w, s, v: [
            tf.nn.conv3d(x, w, [1, 2, 1, 1, 1], "VALID"),
            tf.nn.conv1d(s, v, 2, "VALID"),
        ],
        *(x, w, s, v),
    )
    pads = ((0, 0),) * 3
    expected = convolved(x, w, (2, 1, 1), pads, (1, 1, 1))
    np.testing.assert_allclose(volumes, expected, rtol=1e-9)
    np.testing.assert_allclose(sequences, convolved(s, v, (2,), ((0, 0),), (1,)), rtol=1e-9)


def test_dilation_by_space_to_batch_equals_dilated_windows():
    """Two ways to the same values: over phases in the batch, and in one operation."""
    x = tf.placeholder(tf.float64, [None, None, None, 4])
    w, d = tf.constant(W), tf.constant(W[..., :2])
    one = [1, 1, 1, 1]
    pairs = [
        [tf.nn.atrous_conv2d(x, w, 2, "SAME"), tf.nn.conv2d(x, w, 1, "SAME", dilations=2)],
        [
            tf.nn.convolution(x, w, "VALID", dilation_rate=[2, 3]),
            tf.nn.conv2d(x, w, 1, "VALID", dilations=[2, 3]),
        ],
        [
            tf.nn.convolution(x, w, EXPLICIT, dilation_rate=[2, 3]),
            tf.nn.conv2d(x, w, 1, EXPLICIT, dilations=[2, 3]),
        ],
        [
            tf.nn.depthwise_conv2d(x, d, one, "SAME", rate=[2, 1]),
            tf.nn.depthwise_conv2d_native(x, d, one, "SAME", dilations=[1, 2, 1, 1]),
        ],
    ]
    for a, b in run_both(pairs, {x: X}):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert pairs[0][0].shape.as_list() == [None, None, None, 6]


@pytest.mark.parametrize(
    ("dtype", "digits"),
    [(np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2), (np.float32, 1e-5), (np.int32, 0)],
)
def test_element_types(dtype, digits):
    x, w = ((4 * a).astype(dtype) for a in (X, W))
    grad = np.ones((2, 6, 5, 6), dtype)
    one = [1, 1, 1, 1]

    def build(x, w, grad):
        results = [
            tf.nn.conv2d(x, w, 1, "SAME"),
            tf.nn.conv2d_backprop_input([2, 6, 5, 4], w, grad, one, "SAME"),
        ]
        if dtype != np.int32:
            results.append(tf.nn.conv2d_backprop_filter(x, [3, 2, 4, 6], grad, one, "SAME"))
        return results

    values = evaluate(build, x, w, grad, rtol=10 * digits, atol=10 * digits)
    seen = windows(x.astype(np.float64), (3, 2), (1, 1), SAME, (1, 1))
    back = w.astype(np.float64)[::-1, ::-1].swapaxes(2, 3)
    expected = [
        convolved(x, w, pads=SAME),
        convolved(grad, back, pads=((1, 1), (1, 0))),
        np.repeat(seen.sum((0, 1, 2))[..., None], 6, -1),
    ]
    assert all(value.dtype == dtype for value in values)
    for value, wanted in zip(values, expected):
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(value.astype(np.float64), wanted, atol=digits * scale)


@pytest.mark.parametrize(
    "arguments",
    [
        {"strides": [2, 1], "padding": "SAME"},
        {"strides": 1, "padding": [[0, 0], [1, 0], [0, 2], [0, 0]]},
        {"strides": 1, "padding": "VALID", "dilations": 2},
        {"strides": 1, "padding": "SAME", "data_format": "NCHW"},
    ],
    ids=["strided", "explicit", "dilated", "NCHW"],
)
def test_derivatives_of_conv2d(arguments):
    # The third derivative of a square: every gradient's gradient takes part.
    x, w = normal(1, 4, 3, 2), normal(2, 2, 2, 2)
    if "data_format" in arguments:
        x = x.transpose(0, 3, 1, 2)

    def build(x, w):
        return tf.square(tf.nn.conv2d(x, w, **arguments))

    assert_derivatives(build, x / 2, w / 2, order=3, tolerance=1e-4)


@pytest.mark.parametrize(
    ("build", "shapes"),
    [
        (lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), [(1, 3, 2, 4), (2, 2, 2, 2)]),
        (
            lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME"),
            [(1, 4, 3, 2), (2, 2, 2, 2)],
        ),
        (
            lambda x, w: tf.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME"),
            [(1, 2, 3, 2, 1), (2, 2, 1, 1, 2)],
        ),
        (
            lambda x, w: tf.nn.conv2d_transpose(x, w, [1, 4, 3, 2], 2),
            [(1, 2, 2, 3), (2, 3, 2, 3)],
        ),
        (
            lambda x, w: tf.nn.conv3d_transpose(x, w, [1, 2, 2, 2, 1], 2),
            [(1, 1, 1, 1, 2), (2, 2, 1, 1, 2)],
        ),
        (
            lambda x, y: tf.nn.conv2d_backprop_filter(x, [2, 2, 2, 2], y, [1, 1, 1, 1], "VALID"),
            [(1, 3, 3, 2), (1, 2, 2, 2)],
        ),
        (lambda x, w: tf.nn.atrous_conv2d(x, w, 2, "VALID"), [(1, 4, 3, 2), (2, 2, 2, 1)]),
        (lambda x, w: tf.nn.conv1d(x, w, 2, "SAME"), [(2, 4, 2), (3, 2, 2)]),
    ],
    ids=[
        *("groups", "depthwise", "conv3d", "conv2d_transpose", "conv3d_transpose"),
        *("backprop_filter", "atrous", "conv1d"),
    ],
)
def test_derivatives(build, shapes):
    assert_derivatives(build, *(normal(*shape) for shape in shapes), tolerance=1e-5)


def test_derivatives_of_dilation_and_erosion():
    x, w = normal(1, 4, 3, 2), normal(2, 2, 2)
    assert_derivatives(lambda x, w: tf.nn.dilation2d(x, w, 1, [2, 1], "SAME"), x, w, order=1)
    assert_derivatives(lambda x, w: tf.nn.erosion2d(x, w, 2, 1, "VALID"), x, w, order=1)


def test_dilation_of_small_integers_does_not_wrap_around():
    x = np.full((1, 3, 3, 1), -100, np.int8)
    w = np.full((3, 3, 1), -20, np.int8)
    y = evaluate(lambda x, w: tf.nn.dilation2d(x, w, 1, 1, "SAME"), x, w)
    np.testing.assert_array_equal(y, -120)


def test_a_batch_of_any_size():
    x = tf.placeholder(tf.float64, [None, 6, 5, 4])
    y = tf.nn.conv2d(x, tf.constant(W), 2, "SAME")
    restored = tf.nn.conv2d_transpose(y, tf.constant(W), tf.shape(x), 2)
    grad = tf.gradients(y, x)[0]
    assert y.shape.as_list() == [None, 3, 3, 6]
    assert restored.shape.as_list() == grad.shape.as_list() == [None, 6, 5, 4]
    with session(COMPILED) as sess:
        for batch in (2, 1):
            values = sess.run([y, restored, grad], {x: X[:batch]})
            assert [value.shape[0] for value in values] == [batch] * 3


def test_no_examples():
    x = tf.placeholder(tf.float64, [None, 6, 5, 4])
    y = tf.nn.conv2d(x, tf.constant(W), 1, "VALID")
    value, grad = run_both([y, tf.gradients(y, x)[0]], {x: X[:0]})
    assert value.shape == (0, 4, 4, 6) and grad.shape == (0, 6, 5, 4)


@pytest.mark.parametrize(
    ("x", "w", "arguments", "expected"),
    [
        (None, [3, 3, 2, 8], {}, [None, None, None, 8]),
        ([8, None, 10, 2], [3, 3, 2, 8], {}, [8, None, 10, 8]),
        ([8, None, 10, 2], [3, 3, 2, 8], {"strides": 3}, [8, None, 4, 8]),
        ([8, 9, 10, 2], [None, 3, 2, None], {"padding": "VALID"}, [8, None, 8, None]),
        ([8, 9, 10, 2], None, {}, [8, 9, 10, None]),
        ([8, 2, None, 9], [3, 3, None, 8], {"data_format": "NCHW"}, [8, 8, None, 9]),
    ],
)
def test_partly_known_shapes(x, w, arguments, expected):
    images, filters = tf.placeholder(tf.float32, x), tf.placeholder(tf.float32, w)
    y = tf.nn.conv2d(images, filters, **{"strides": 1, "padding": "SAME", **arguments})
    assert y.shape.as_list() == expected


def image(*shape):
    return tf.zeros(shape)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: tf.nn.conv2d(image(1, 8, 8, 3), image(3, 3, 4, 8), 1, "SAME"),
            r"the input's 3 channels are not a multiple of the filter's 4 .* for 'Conv2D'",
        ),
        (
            lambda: tf.nn.conv2d(image(1, 8, 8, 4), image(3, 3, 2, 5), 1, "SAME"),
            "5 outputs cannot be split into 2 groups",
        ),
        (
            lambda: tf.nn.conv2d(image(8, 8, 3), image(3, 3, 3, 8), 1, "SAME"),
            r"the input must have 4 dimensions, but its shape is \(8, 8, 3\)",
        ),
        (
            lambda: tf.nn.conv2d(image(1, 2, 8, 3), image(3, 3, 3, 8), 1, "VALID"),
            "a window of 3 does not fit into an axis of 2 with padding VALID",
        ),
        (
            lambda: tf.nn.conv2d(image(1, 8, 8, 3), image(3, 3, 3, 8), [1, 2, 3], "SAME"),
            r"strides must be one number, or a list of 2 .* but got \[1, 2, 3\]",
        ),
        (
            lambda: tf.nn.conv2d(image(1, 8, 8, 3), image(3, 3, 3, 8), [1, 1, 1, 2], "SAME"),
            "strides must be 1 along the batch and the channels",
        ),
        (
            lambda: tf.nn.conv2d(image(1, 8, 8, 3), image(3, 3, 3, 8), 0, "SAME"),
            "strides must be 4 positive numbers",
        ),
        (
            lambda: tf.nn.conv2d(image(1, 8, 8, 3), image(3, 3, 3, 8), 1, "same"),
            "'padding' is 'same', but must be one of: 'SAME', 'VALID'",
        ),
        (
            lambda: tf.nn.conv2d(image(1, 8, 8, 3), image(3, 3, 3, 8), 1, [[1, 1], [1, 1]]),
            "a list of 4 pairs",
        ),
        (
            lambda: tf.nn.conv2d(
                image(1, 8, 8, 3), image(3, 3, 3, 8), 1, [[1, 1], [1, 1], [1, 1], [0, 0]]
            ),
            "explicit_paddings must be 0 along the batch",
        ),
        (
            lambda: tf.nn.conv2d(
                image(1, 8, 8, 3), image(3, 3, 3, 8), 1, "SAME", data_format="HWCN"
            ),
            "data_format must be NHWC or NCHW, but got 'HWCN'",
        ),
        (
            lambda: tf.nn.conv2d(image(1, 8, 8, 3), image(3, 3, 3, 8), filters=image(1), strides=1),
            "Cannot specify both 'filters' and 'filter'",
        ),
        (
            lambda: tf.nn.conv2d_transpose(
                image(1, 4, 4, 8), image(3, 3, 3, 8), [1, 9, 8, 3], 2, "SAME"
            ),
            r"gradient has shape \(1, 4, 4, 8\), but the output has shape \(1, 5, 4, 8\)",
        ),
        (
            lambda: tf.nn.conv2d_transpose(image(1, 4, 4, 8), image(3, 3, 3, 8), [8, 8, 3], 2),
            r"the input \(input_sizes\) must have 4 dimensions",
        ),
        (
            lambda: tf.nn.depthwise_conv2d(image(1, 8, 8, 3), image(3, 3, 4, 2), [1] * 4, "SAME"),
            "a depthwise filter needs the input's 3 channels",
        ),
        (
            lambda: tf.nn.depthwise_conv2d(
                image(1, 8, 8, 3), image(3, 3, 3, 2), [1, 2, 2, 1], "SAME", rate=[2, 2]
            ),
            "strides must be 1 where the rate is more",
        ),
        (
            lambda: tf.nn.separable_conv2d(
                image(1, 8, 8, 3), image(3, 3, 3, 2), image(3, 3, 6, 4), [1] * 4, "SAME"
            ),
            "a window of 1 x 1",
        ),
        (
            lambda: tf.nn.conv3d(image(1, 4, 4, 4, 2), image(2, 2, 2, 3, 3), [1] * 5, "SAME"),
            "2 channels are not a multiple of the filter's 3",
        ),
        (
            lambda: tf.nn.conv3d(image(1, 4, 4, 4, 2), image(2, 2, 2, 2, 3), [1] * 5, [[0, 0]] * 5),
            "conv3d takes no list of paddings",
        ),
        (
            lambda: tf.nn.convolution(
                image(1, 8, 8, 3), image(3, 3, 3, 2), "SAME", strides=[2, 2], dilation_rate=[2, 2]
            ),
            "strides and dilation_rate cannot both be more than 1",
        ),
        (
            lambda: tf.nn.with_space_to_batch(image(1, 8, 8, 3), [2, 0], "VALID", None),
            r"dilation_rate must be positive, but got \[2, 0\]",
        ),
    ],
)
def test_mistakes_are_found_while_building(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("level", [INTERPRETED, COMPILED])
def test_mistakes_of_a_step_name_the_operation(level):
    x = tf.placeholder(tf.float32)
    y = tf.nn.conv2d(x, tf.ones([3, 3, 4, 8]), 1, "VALID", name="layer")
    with session(level) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="3 channels.*filter's 4") as info:
            sess.run(y, {x: np.zeros((1, 8, 8, 3))})
        assert info.value.op.name == "layer"
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit"):
            sess.run(y, {x: np.zeros((1, 2, 8, 4))})
        with pytest.raises(tf.errors.InvalidArgumentError, match="with 4 axes"):
            sess.run(y, {x: np.zeros((8, 8, 4))})
        assert sess.run(y, {x: np.ones((1, 3, 3, 4))}).shape == (1, 1, 1, 8)


@pytest.mark.parametrize("name", ["Conv2D", "Conv3DBackpropInputV2", "DepthwiseConv2dNative"])
def test_steps_with_convolutions_are_compiled_at_once(name):
    assert tf.get_op_def(name).heavy


def test_required_space_to_batch_paddings():
    sizes = tf.placeholder(tf.int32, [2])
    fixed = tf.required_space_to_batch_paddings([9, 8], [2, 4], [[1, 0], [0, 1]])
    dynamic = tf.required_space_to_batch_paddings(sizes, [2, 4], [[1, 0], [0, 1]])
    values = run_both([*fixed, *dynamic], {sizes: [9, 8]})
    for paddings, crops in (values[:2], values[2:]):
        assert paddings.tolist() == [[1, 0], [0, 4]]
        assert crops.tolist() == [[0, 0], [0, 3]]
