"""Gathering, scattering and selecting compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import V, X, Y, case  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

CASES = [
    case(
        "gather",
        lambda tf, x, i: [tf.gather(x, i), tf.gather(x, [[1, 0], [0, 0]])],
        X,
        np.int32([1, 0, 1]),
        order=2,
    ),
    case(
        "gather axis",
        lambda tf, x, i: [
            tf.gather(x, i, axis=1),
            tf.gather(x, i, axis=-1),
            tf.gather(x, 1, axis=2),
        ],
        X,
        np.int64([[1, 0], [2, 1]]),
        order=2,
    ),
    case(
        "gather batch",
        lambda tf, x, i: [
            tf.gather(x, i, axis=1, batch_dims=1),
            tf.gather(x, i, axis=2, batch_dims=1),
            tf.batch_gather(x, i),
        ],
        X,
        np.int32([[1, 0], [2, 1]]),
    ),
    case(
        "gather batch of batches",
        lambda tf, x, i: tf.gather(x, i, batch_dims=2),
        X,
        np.int32(np.arange(12).reshape(2, 3, 2) % 4),
    ),
    case(
        "gather unknown",
        lambda tf, x, i: [tf.gather(x, i), tf.gather(x, i, axis=1)],
        X,
        np.int32([[1, 0], [1, 1]]),
        shapes=[[None, None, 4], [None, 2]],
    ),
    case(
        "gather_nd",
        lambda tf, x: [
            tf.gather_nd(x, [[0, 1], [1, 2]]),
            tf.gather_nd(x, [[1], [1]]),
            tf.gather_nd(x, [[[0, 1, 2]], [[1, 2, 3]]]),
        ],
        X,
        order=2,
    ),
    case(
        "gather_nd batch", lambda tf, x: tf.gather_nd(x, [[[0], [1]], [[2], [0]]], batch_dims=1), X
    ),
    case(
        "gather_nd data", lambda tf, x, i: tf.gather_nd(x, i), X, np.int64([[0, 1], [1, 2], [0, 1]])
    ),
    case(
        "scatter_nd",
        lambda tf, v, i: [
            tf.scatter_nd(i, v, [8]),
            tf.scatter_nd(i[:2], tf.reshape(v[:4], [2, 2]), [8, 2]),
        ],
        V,
        np.int32([[1], [3], [1], [0], [7]]),
        order=2,
    ),
    case(
        "tensor_scatter",
        lambda tf, x, y: [
            tf.tensor_scatter_update(x, [[0, 1], [1, 2]], y[0, :2]),
            tf.tensor_scatter_add(x, [[1], [1]], y),
            tf.tensor_scatter_sub(x, [[0], [0]], y),
        ],
        X,
        Y,
    ),
    case(
        "boolean_mask",
        lambda tf, x, m: [
            tf.boolean_mask(x, m),
            tf.boolean_mask(x, [True, False]),
            tf.boolean_mask(x, [True, False, True], axis=1),
        ],
        X,
        np.array([[True, False, True], [False, True, True]]),
    ),
    case(
        "boolean_mask unknown",
        lambda tf, x, m: tf.boolean_mask(x, m),
        X,
        np.array([[True, False, True], [False, True, True]]),
        shapes=[[None, 3, 4], [None, None]],
    ),
    case(
        "where",
        lambda tf, x, y: [
            tf.where(x > 0),
            tf.where(x > 0, x, y),
            tf.where([True, False], x, y),
            tf.where(x[0] > 0, x[0], y[0]),
        ],
        X,
        Y,
    ),
    case(
        "where_v2",
        lambda tf, x, y: [
            tf.where_v2(x > 0, x, y[0, 0]),
            tf.where_v2(x[:, :1] > 0, 1.0, y),
            tf.where_v2(True, x, y),
        ],
        X,
        Y,
    ),
    case(
        "unique",
        lambda tf, v: [*tf.unique(v), *tf.unique_with_counts(v, out_idx=tf.int64)],
        np.int32([3, 1, 3, 2, 1, 9]),
    ),
    case("unique strings", lambda tf, v: [*tf.unique(["b", "a", "b"])], V),
    case(
        "setdiff1d",
        lambda tf, a, b: [*tf.setdiff1d(a, b)],
        np.int32([1, 5, 2, 2, 4]),
        np.int32([2, 9]),
    ),
    case(
        "dynamic_partition",
        lambda tf, x, p: tf.dynamic_partition(x, p, 3),
        X,
        np.int32([[0, 2, 0], [2, 2, 0]]),
    ),
    case(
        "dynamic_partition some",
        lambda tf, v, p: tf.dynamic_partition(v, p, 2)[:1],
        V,
        np.int32([0, 1, 1, 0, 1]),
    ),
    case(
        "dynamic_stitch",
        lambda tf, x, y: tf.dynamic_stitch([[0, 5], [[1], [5]]], [x, y[:, None]]),
        X,
        Y,
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)
