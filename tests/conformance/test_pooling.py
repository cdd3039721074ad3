"""Max- and average-pooling compared with TensorFlow: values, static shapes, gradients."""

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
    op_of,
)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


X = normal(2, 7, 6, 3)
SEQUENCE = normal(2, 9, 3)
VOLUME = normal(2, 4, 5, 3, 2)
# Many equal elements: the gradient goes to the first.
TIES = np.random.default_rng(0).integers(0, 3, (2, 7, 6, 3)).astype(np.float32)
POOLS = [[1, 2, 2, 1], [1, 3, 2, 1], "SAME"]

CASES = [
    case("max", lambda tf, x: tf.nn.max_pool(x, 3, 2, "SAME"), X, order=2),
    case("max valid", lambda tf, x: tf.nn.max_pool(x, [2, 3], [1, 2, 1, 1], "VALID"), X),
    case("max of ties", lambda tf, x: tf.nn.max_pool(x, 3, 1, "SAME"), TIES),
    case("max overlapping", lambda tf, x: tf.nn.max_pool2d(x, 3, [1, 2], "VALID") ** 2, X, order=3),
    case("max of all", lambda tf, x: tf.nn.max_pool(x, [7, 6], 1, "VALID"), X, order=2),
    case(
        "max explicit",
        lambda tf, x: tf.nn.max_pool(x, 3, 2, [[0, 0], [1, 2], [2, 0], [0, 0]]),
        X,
    ),
    case(
        "max unknown",
        lambda tf, x: tf.nn.max_pool(x, 2, 2, "VALID"),
        X,
        shapes=[[None, None, 6, None]],
    ),
    case("max unknown rank", lambda tf, x: tf.nn.max_pool(x, 2, 2, "SAME"), X, shapes=[None]),
    case(
        "max by tensors",
        lambda tf, x: op_of(tf, "MaxPoolV2")(x, [1, 2, 2, 1], [1, 1, 2, 1], padding="SAME"),
        X,
    ),
    case(
        "max with argmax",
        lambda tf, x: [
            *tf.nn.max_pool_with_argmax(x, *POOLS),
            *tf.nn.max_pool_with_argmax(
                x, [1, 3, 3, 1], [1, 1, 1, 1], "VALID", include_batch_in_index=True
            ),
        ],
        X,
    ),
    case(
        "max with argmax of ties",
        lambda tf, x: tf.nn.max_pool_with_argmax(
            x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME", Targmax=tf.int32
        ),
        TIES,
        order=0,
    ),
    case("max1d", lambda tf, x: tf.nn.max_pool1d(x, 2, 2, [[0, 0], [1, 0], [0, 0]]), SEQUENCE),
    case("max3d", lambda tf, x: tf.nn.max_pool3d(x, 2, [1, 2, 1, 1, 1], "SAME"), VOLUME),
    case(
        "max by rank",
        lambda tf, x, y, z: [tf.nn.max_pool_v2(t, 2, 2, "SAME") for t in (x, y, z)],
        SEQUENCE,
        X,
        VOLUME,
    ),
    case("avg", lambda tf, x: tf.nn.avg_pool(x, 3, 2, "SAME"), X, order=3),
    case("avg valid", lambda tf, x: tf.nn.avg_pool(x, [3, 2], 1, "VALID") ** 2, X, order=2),
    case("avg apart", lambda tf, x: tf.nn.avg_pool2d(None, 1, 3, "SAME", input=x), X),
    case(
        "avg unknown",
        lambda tf, x: tf.nn.avg_pool(x, 2, 2, "SAME"),
        X,
        shapes=[[None, None, 6, 3]],
    ),
    case("avg1d", lambda tf, x: tf.nn.avg_pool1d(x, 3, 2, "SAME"), SEQUENCE),
    case("avg3d", lambda tf, x: tf.nn.avg_pool3d(x, 2, 1, "SAME") ** 2, VOLUME, order=2),
    case(
        "avg by rank",
        lambda tf, x, y, z: [tf.nn.avg_pool_v2(t, 2, 2, "VALID") for t in (x, y, z)],
        SEQUENCE,
        X,
        VOLUME,
    ),
    case(
        "pool",
        lambda tf, x: [
            tf.nn.pool(x, [2, 3], "MAX", "SAME", strides=[2, 1]),
            tf.nn.pool(x, [2, 3], "AVG", "VALID", dilation_rate=[2, 1]),
        ],
        X,
    ),
    case(
        "pool sequences",
        lambda tf, x: [
            tf.nn.pool(x, [2], "AVG", "SAME"),
            tf.nn.pool(x, [2], "MAX", "VALID", dilation_rate=[3]),
        ],
        SEQUENCE,
    ),
    case("pool volumes", lambda tf, x: tf.nn.pool(x, [2, 2, 2], "MAX", "VALID"), VOLUME),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_names(build: Any, arrays: Any, options: Any) -> None:
    types = "Conv|Pool|SpaceToBatch|BatchToSpace|ExpandDims|Squeeze|Dilation"
    compare_names(build, *arrays, types=types, **options)


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)


@EVERY_FLOAT
def test_types(dtype: str) -> None:
    compare_in(
        dtype,
        lambda tf, x: [tf.nn.avg_pool(x, 3, 2, "SAME"), tf.nn.max_pool(x, 3, 2, "SAME")],
        X,
    )


def test_volumes_in_bfloat16() -> None:
    compare_in(
        "bfloat16",
        lambda tf, x: [tf.nn.avg_pool3d(x, 3, 2, "SAME"), tf.nn.max_pool3d(x, 3, 2, "SAME")],
        VOLUME,
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64"])
def test_maxima_of_integers(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 100, (1, 5, 4, 2)).astype(dtype)
    compare(lambda tf, x: tf.nn.max_pool(x, 3, 2, "SAME"), x, order=0)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_static_shapes_with_channels_first(padding: str) -> None:
    """TensorFlow has no kernels for them on a CPU."""
    import tensorflow.compat.v1 as reference

    import runnel

    found = []
    for tf in (runnel, reference):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, 3, 9, None])
            v = tf.placeholder(tf.float32, [2, 3, 9, None, 6])
            s = tf.placeholder(tf.float32, [2, 3, 9])
            pools = [
                tf.nn.max_pool(x, [2, 3], 2, padding, data_format="NCHW"),
                tf.nn.avg_pool(x, [1, 1, 3, 3], 2, padding, data_format="NCHW"),
                tf.nn.max_pool3d(v, 2, 2, padding, data_format="NCDHW"),
                tf.nn.avg_pool3d(v, 2, 2, padding, data_format="NCDHW"),
                tf.nn.max_pool1d(s, 2, 3, padding, data_format="NCW"),
            ]
            pools += tf.gradients(pools, [x, v, s])
            found.append([t.shape.as_list() for t in pools])
    assert found[0] == found[1]
