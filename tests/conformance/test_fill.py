"""Constants of any size, ranges, one-hot vectors and masks compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import X, case  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

CASES = [
    case(
        "zeros",
        lambda tf, x: [
            tf.zeros([2, 3]),
            tf.zeros([], tf.int32),
            tf.zeros(tf.shape(x)),
            tf.zeros([2], tf.bool),
        ],
        X,
    ),
    case(
        "ones",
        lambda tf, x: [tf.ones([2, 3], tf.float16), tf.ones(3, tf.int64), tf.ones([1, 1200])],
        X,
    ),
    case(
        "like",
        lambda tf, x: [
            tf.zeros_like(x),
            tf.ones_like(x),
            tf.zeros_like(x, tf.int32),
            tf.ones_like(x, tf.bool),
        ],
        X,
        shapes=[[None, 3, None]],
    ),
    case(
        "fill",
        lambda tf, x: [tf.fill([2, 3], x[0, 0, 0]), tf.fill(tf.shape(x)[:2], 7)],
        X,
        shapes=[[None, 3, 4]],
    ),
    case(
        "range",
        lambda tf, n: [
            tf.range(5),
            tf.range(2, 9, 3),
            tf.range(9, 2, -3),
            tf.range(n),
            tf.range(1, n, dtype=tf.int64),
            tf.range(0.0, 1.0, 0.1),
        ],
        np.int32(6),
    ),
    case(
        "range of floats",
        lambda tf, n: [tf.range(2.5, 9.0, 0.75), tf.range(3.0, -1.0, -0.3)],
        np.int32(6),
    ),
    case("eye", lambda tf, n: [tf.eye(3), tf.eye(2, 4), tf.eye(4, 2, [3], tf.int32)], np.int32(6)),
    case(
        "one_hot",
        lambda tf, i: [
            tf.one_hot(i, 3),
            tf.one_hot(i, 4, axis=0),
            tf.one_hot(i, 3, 5, -1),
            tf.one_hot(i, 2, on_value=True, off_value=False),
        ],
        np.int32([[0, 2], [-1, 1]]),
    ),
    case(
        "sequence_mask",
        lambda tf, n: [
            tf.sequence_mask(n),
            tf.sequence_mask(n, 4),
            tf.sequence_mask(n, 3, tf.float32),
        ],
        np.int32([1, 0, 3]),
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)
