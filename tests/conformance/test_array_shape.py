"""Shapes as values, reshaping, transposing and broadcasting compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import V, X, Y, case  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

CASES = [
    case("shape", lambda tf, x: [tf.shape(x), tf.shape(x, out_type=tf.int64)], X),
    case("shape unknown", lambda tf, x: [tf.shape(x), tf.size(x), tf.rank(x)], X, shapes=[None]),
    case("shape_n", lambda tf, x, y: tf.shape_n([x, y]), X, Y, shapes=[[None, 3, 4], None]),
    case(
        "size", lambda tf, x: [tf.size(x), tf.size(x, out_type=tf.int64)], X, shapes=[[None, 3, 4]]
    ),
    case("reshape", lambda tf, x: [tf.reshape(x, [4, -1]), tf.reshape(x, [-1])], X, order=2),
    case("reshape partly known", lambda tf, x: tf.reshape(x, [-1, 2, 2]), X, shapes=[[None, 3, 4]]),
    case(
        "reshape by shape",
        lambda tf, x: tf.reshape(x, [tf.shape(x)[0], -1]),
        X,
        shapes=[[None, 3, 4]],
    ),
    case(
        "reshape by parts",
        lambda tf, x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [12]], 0)),
        X,
        shapes=[[None, None, 4]],
    ),
    case("expand_dims", lambda tf, x: [tf.expand_dims(x, a) for a in (0, 2, 3, -1, -4)], X),
    case(
        "squeeze",
        lambda tf, x: [
            tf.squeeze(x[:, None]),
            tf.squeeze(x[None, :, None], [0]),
            tf.squeeze(x[..., None], axis=-1),
        ],
        X,
    ),
    case("squeeze unknown", lambda tf, x: tf.squeeze(x), X[:1], shapes=[[None, 3, 4]]),
    case("transpose", lambda tf, x: [tf.transpose(x), tf.transpose(x, [1, 0, 2])], X, order=2),
    case("transpose unknown", lambda tf, x: tf.transpose(x), X, shapes=[None]),
    case("transpose by data", lambda tf, x, p: tf.transpose(x, p), X, np.int32([2, 0, 1])),
    case("matrix_transpose", lambda tf, x: tf.matrix_transpose(x), X),
    case(
        "broadcast_to",
        lambda tf, x: [tf.broadcast_to(x, [2, 2, 3, 4]), tf.broadcast_to(x[:, :1], [5, 2, 3, 4])],
        X,
        order=2,
    ),
    case(
        "broadcast_dynamic_shape",
        lambda tf, a, b: tf.broadcast_dynamic_shape(a, b),
        np.int32([2, 1]),
        np.int32([4, 1, 3]),
    ),
    case("invert_permutation", lambda tf, p: tf.invert_permutation(p), np.int32([3, 4, 0, 2, 1])),
    case(
        "ensure_shape", lambda tf, x: tf.ensure_shape(x, [2, None, 4]), X, shapes=[[None, 3, None]]
    ),
    case(
        "meshgrid",
        lambda tf, a, b: [*tf.meshgrid(a, b), *tf.meshgrid(a, b, indexing="ij")],
        V,
        V[:3],
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)
