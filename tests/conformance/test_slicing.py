"""Slicing compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import X, case  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

CASES = [
    case(
        "getitem",
        lambda tf, x: [
            x[0],
            x[-1, 1],
            x[..., 2],
            x[:, 1:],
            x[::-1, :, ::2],
            x[1, ..., None],
            x[:, tf.newaxis, -1:0:-1],
            x[0, 0, 0],
            x[:, :, 3:1],
            x[-1:, 0],
        ],
        X,
        order=2,
    ),
    case(
        "getitem unknown",
        lambda tf, x: [x[0], x[..., 2], x[:, 1:], x[1:, 0], x[::2], x[:, None], x[-2:], x[:1]],
        X,
        shapes=[[None, 3, None]],
    ),
    case("getitem unknown rank", lambda tf, x: [x[0], x[..., 1:3]], X, shapes=[None]),
    case(
        "getitem by tensor",
        lambda tf, x, i: [x[i], x[:, i], x[i, i], x[i, ..., -1], x[0, i, None]],
        X,
        np.int32(1),
        order=2,
    ),
    case("getitem by int64", lambda tf, x, i: [x[:, i], x[i:, 0]], X, np.int64(-1)),
    # Placeholders of unknown shape: our static shapes say more here than TensorFlow's.
    case(
        "getitem mixed",
        lambda tf, x, i: [x[1:, i], x[:2, i, 1:3], x[0:1, None, i, ::2]],
        X,
        np.int32(1),
        shapes=[None, []],
        order=2,
    ),
    case(
        "getitem ranges by tensor",
        lambda tf, x, i: [x[:i], x[0, i:], x[:, i : i + 2]],
        X,
        np.int32(1),
    ),
    case("getitem mask", lambda tf, x: x[np.array([True, False])], X),
    case(
        "strided_slice",
        lambda tf, x: [
            tf.strided_slice(x, [0, 1], [2, 3]),
            tf.strided_slice(x, [1, 2, 3], [0, 0, 0], [-1, -1, -2]),
            tf.strided_slice(x, [0, 0], [1, 2], [1, 1], shrink_axis_mask=1, end_mask=2),
        ],
        X,
    ),
    case(
        "slice",
        lambda tf, x: [tf.slice(x, [0, 1, 2], [1, 2, 1]), tf.slice(x, [1, 0, 1], [-1, -1, 2])],
        X,
        order=2,
    ),
    case(
        "slice unknown",
        lambda tf, x: [tf.slice(x, [0, 1, 2], [1, 2, 1]), tf.slice(x, [1, 0, 1], [-1, -1, 2])],
        X,
        shapes=[[None, 3, 4]],
    ),
    case(
        "slice by data", lambda tf, x, b: tf.slice(x, b, [1, 2, 2]), X, np.int32([1, 1, 2]), order=2
    ),
    case(
        "slice all by data",
        lambda tf, x, b, s: tf.slice(x, b, s),
        X,
        np.int32([1, 1, 2]),
        np.int32([1, -1, 2]),
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)
