"""Convolutions of every kind compared with TensorFlow: values, static shapes, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import case  # noqa: E402
from tests.conformance.side_by_side import (  # noqa: E402
    EVERY_FLOAT,
    compare,
    compare_in,
    compare_names,
)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


X = normal(2, 7, 6, 4)
FILTER = normal(3, 2, 4, 6)
Y = normal(2, 7, 6, 6)
SEQUENCE = normal(2, 9, 4)
SEQUENCE_FILTER = normal(3, 4, 5)
VOLUME = normal(2, 4, 5, 3, 2)
VOLUME_FILTER = normal(2, 3, 2, 2, 3)
DEPTHWISE = normal(3, 2, 4, 2)
POINTWISE = normal(1, 1, 8, 3)

CASES = [
    case("same", lambda tf, x, w: tf.nn.conv2d(x, w, 1, "SAME"), X, FILTER, order=3),
    case("strided", lambda tf, x, w: tf.nn.conv2d(x, w, [1, 2, 3, 1], "SAME"), X, FILTER, order=2),
    case("valid", lambda tf, x, w: tf.nn.conv2d(x, w, 2, "VALID"), X, FILTER, order=2),
    case(
        "explicit",
        lambda tf, x, w: tf.nn.conv2d(x, w, [2, 1], [[0, 0], [1, 2], [3, 0], [0, 0]]),
        X,
        FILTER,
    ),
    case(
        "dilated",
        lambda tf, x, w: tf.nn.conv2d(x, w, 1, "VALID", dilations=[1, 2, 3, 1]),
        X,
        FILTER,
        order=0,
    ),
    case("groups", lambda tf, x, w: tf.nn.conv2d(x, w, 1, "SAME"), X, normal(3, 2, 2, 6), order=0),
    case(
        "unknown",
        lambda tf, x, w: tf.nn.conv2d(x, w, 2, "SAME"),
        X,
        FILTER,
        shapes=[[None, None, 6, 4], [3, 2, 4, 6]],
    ),
    case(
        "unknown window",
        lambda tf, x, w: tf.nn.conv2d(x, w, 2, "VALID"),
        X,
        FILTER,
        shapes=[[None, 7, 6, None], [None, 2, 4, 6]],
        order=0,
    ),
    case(
        "unknown rank",
        lambda tf, x, w: tf.nn.conv2d(x, w, 2, "VALID"),
        X,
        FILTER,
        shapes=[None, [3, 2, 4, 6]],
        order=0,
    ),
    case(
        "aliases",
        lambda tf, x, w: tf.nn.conv2d(x, filters=w, strides=(1, 1), padding="SAME"),
        X,
        FILTER,
        order=0,
    ),
    case(
        "backprop_input",
        lambda tf, y, w: tf.nn.conv2d_backprop_input([2, 7, 6, 4], w, y, [1, 1, 1, 1], "SAME"),
        Y,
        FILTER,
        order=2,
    ),
    case(
        "backprop_filter",
        lambda tf, x, y: tf.nn.conv2d_backprop_filter(x, [3, 2, 4, 6], y, [1, 1, 1, 1], "SAME"),
        X,
        Y,
        order=2,
    ),
    case(
        "transpose",
        lambda tf, y, w: tf.nn.conv2d_transpose(y, w, [2, 14, 12, 4], 2),
        Y,
        FILTER,
        order=2,
    ),
    case(
        "transpose of any batch",
        lambda tf, y, w: tf.nn.conv2d_transpose(
            y, w, tf.stack([tf.shape(y)[0], 9, 7, 4]), [1, 1, 1, 1], "VALID"
        ),
        Y,
        FILTER,
        shapes=[[None, 7, 6, 6], [3, 2, 4, 6]],
    ),
    case("conv1d", lambda tf, x, w: tf.nn.conv1d(x, w, 2, "SAME"), SEQUENCE, SEQUENCE_FILTER),
    case(
        "conv1d_transpose",
        lambda tf, y, w: tf.nn.conv1d_transpose(y, w, [2, 18, 4], 2),
        normal(2, 9, 5),
        SEQUENCE_FILTER,
    ),
    case(
        "conv_transpose",
        lambda tf, y, w: tf.nn.conv_transpose(y, w, tf.constant([2, 11, 4]), 1, "VALID"),
        normal(2, 9, 5),
        SEQUENCE_FILTER,
    ),
    case(
        "conv3d",
        lambda tf, x, w: tf.nn.conv3d(x, w, [1, 2, 1, 1, 1], "SAME"),
        VOLUME,
        VOLUME_FILTER,
        order=2,
    ),
    case(
        "conv3d_transpose",
        lambda tf, y, w: tf.nn.conv3d_transpose(y, w, [2, 4, 5, 3, 2], [1, 1, 1, 1, 1]),
        normal(2, 4, 5, 3, 3),
        VOLUME_FILTER,
    ),
    case(
        "depthwise",
        lambda tf, x, w: tf.nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME"),
        X,
        DEPTHWISE,
        order=2,
    ),
    case(
        "depthwise explicit",
        lambda tf, x, w: tf.nn.depthwise_conv2d_native(
            x, w, [1, 1, 1, 1], [[0, 0], [1, 0], [2, 1], [0, 0]]
        ),
        X,
        DEPTHWISE,
    ),
    case(
        "depthwise rate",
        lambda tf, x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", rate=[2, 3]),
        X,
        DEPTHWISE,
    ),
    case(
        "depthwise backprops",
        lambda tf, x, w, y: [
            tf.nn.depthwise_conv2d_native_backprop_input([2, 7, 6, 4], w, y, [1, 1, 1, 1], "SAME"),
            tf.nn.depthwise_conv2d_native_backprop_filter(x, [3, 2, 4, 2], y, [1, 1, 1, 1], "SAME"),
        ],
        X,
        DEPTHWISE,
        normal(2, 7, 6, 8),
    ),
    case(
        "separable",
        lambda tf, x, d, p: tf.nn.separable_conv2d(x, d, p, [1, 1, 1, 1], "VALID", rate=[2, 2]),
        X,
        DEPTHWISE,
        POINTWISE,
    ),
    case("atrous", lambda tf, x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME"), X, FILTER),
    case(
        "atrous unknown",
        lambda tf, x, w: tf.nn.atrous_conv2d(x, w, 2, "VALID"),
        X,
        FILTER,
        shapes=[[None, None, None, 4], [3, 2, 4, 6]],
    ),
    case(
        "atrous_transpose",
        lambda tf, y, w: [
            tf.nn.atrous_conv2d_transpose(y, w, [2, 7, 6, 4], 2, "SAME"),
            tf.nn.atrous_conv2d_transpose(y, w, [2, 11, 8, 4], 2, "VALID"),
            tf.nn.atrous_conv2d_transpose(y, w, [2, 7, 6, 4], 1, "SAME"),
        ],
        Y,
        FILTER,
    ),
    case(
        "convolution",
        lambda tf, x, w: [
            tf.nn.convolution(x, w, "SAME", strides=[2, 1]),
            tf.nn.convolution(x, w, "VALID", dilation_rate=[2, 1]),
        ],
        X,
        FILTER,
    ),
    case(
        "convolution of sequences",
        lambda tf, x, w: [
            tf.nn.convolution(x, w, "SAME", strides=[2]),
            tf.nn.convolution(x, w, "SAME", dilation_rate=[2]),
        ],
        SEQUENCE,
        SEQUENCE_FILTER,
    ),
    case(
        "convolution of volumes",
        lambda tf, x, w: tf.nn.convolution(x, w, "SAME", dilation_rate=[1, 2, 2]),
        VOLUME,
        VOLUME_FILTER,
    ),
    case(
        "with_space_to_batch",
        lambda tf, x: tf.nn.with_space_to_batch(
            x, [2], "VALID", lambda part, n, padding: part[:, :, 1:] * n, spatial_dims=[2]
        ),
        X,
    ),
    case(
        "required paddings",
        lambda tf, x: [
            *tf.required_space_to_batch_paddings([9, 8], [2, 3], [[1, 0], [0, 2]]),
            *tf.required_space_to_batch_paddings(tf.shape(x)[1:3], [2, 4]),
        ],
        X,
        shapes=[[None] * 4],
        order=0,
    ),
    case(
        "dilation2d",
        lambda tf, x, w: [
            tf.nn.dilation2d(x, w, [1, 1, 1, 1], [1, 2, 2, 1], "SAME"),
            tf.nn.erosion2d(x, w, [1, 2, 1, 1], [1, 1, 1, 1], "VALID"),
        ],
        X,
        normal(3, 2, 4),
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_names(build: Any, arrays: Any, options: Any) -> None:
    types = "Conv|Pool|SpaceToBatch|BatchToSpace|ExpandDims|Squeeze|Dilation"
    compare_names(build, *arrays, types=types, **options)


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **{"rtol": 1e-4, "atol": 1e-4, **options})


@EVERY_FLOAT
def test_types(dtype: str) -> None:
    def build(tf: Any, x: Any, w: Any, d: Any) -> Any:
        return [
            tf.nn.conv2d(x, w, 2, "SAME"),
            tf.nn.depthwise_conv2d_native(x, d, [1, 1, 1, 1], "SAME"),
        ]

    # Sums of a hundred products, whose rounding errors add up in any order.
    tolerance = {"float16": 3e-2, "bfloat16": 3e-1, "float32": 1e-4}.get(dtype, 1e-10)
    compare_in(dtype, build, X, FILTER, DEPTHWISE, atol=tolerance, rtol=tolerance)


def test_volumes_in_half_precision() -> None:
    compare_in(
        "float16",
        lambda tf, x, w: tf.nn.conv3d(x, w, [1, 1, 1, 1, 1], "VALID"),
        VOLUME,
        VOLUME_FILTER,
        rtol=3e-2,
        atol=3e-2,
    )


def test_integers() -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-9, 9, a.shape).astype(np.int32) for a in (X, FILTER))
    compare(lambda tf, x, w: tf.nn.conv2d(x, w, 2, "SAME"), x, w, order=0)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_static_shapes_with_channels_first(padding: str) -> None:
    """TensorFlow has no kernels for them on a CPU."""
    import tensorflow.compat.v1 as reference

    import runnel

    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, 4, 9, None])
            w = tf.placeholder(tf.float32, [3, 2, 4, 6])
            d = tf.placeholder(tf.float32, [3, 3, 4, 2])
            s = tf.placeholder(tf.float32, [2, 4, 9])
            v = tf.placeholder(tf.float32, [None, 2, 9, 8, 7])
            results = [
                tf.nn.conv2d(x, w, [2, 1], padding, data_format="NCHW"),
                tf.nn.conv2d(x, w, 1, padding, data_format="NCHW", dilations=2),
                tf.nn.depthwise_conv2d(x, d, [1, 1, 1, 1], padding, data_format="NCHW"),
                tf.nn.conv1d(s, w[0], 2, padding, data_format="NCW"),
                tf.nn.conv3d(v, w[:, :, None, :2], [1, 1, 2, 2, 2], padding, data_format="NCDHW"),
                tf.nn.convolution(x, w, padding, dilation_rate=[1, 2], data_format="NCHW"),
            ]
            results += tf.gradients(results, [x, w, d, s, v])
            found.append([t.shape.as_list() for t in results])
    assert found[0] == found[1]
