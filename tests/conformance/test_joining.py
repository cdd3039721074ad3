"""Joining, splitting, padding and reversing compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import X, Y, case  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

CASES = [
    case(
        "concat",
        lambda tf, x, y: [tf.concat([x, y], 0), tf.concat([x, y, x], -1), tf.concat([x], 1)],
        X,
        Y,
        order=2,
    ),
    case(
        "concat unknown",
        lambda tf, x, y: [tf.concat([x, y], 1), tf.concat([x, y], 0)],
        X,
        Y,
        shapes=[[None, 3, 4], [2, None, 4]],
    ),
    case("concat by data", lambda tf, x, y, a: tf.concat([x, y], a), X, Y, np.int32(1)),
    case(
        "stack",
        lambda tf, x, y: [tf.stack([x, y]), tf.stack([x, y], 1), tf.stack([x, y], axis=-1)],
        X,
        Y,
        order=2,
    ),
    case(
        "stack numbers",
        lambda tf, x: [
            tf.stack([1, 2]),
            tf.stack([x[0, 0, 0], 1.0]),
            tf.stack([[1, 2], [3, 4]], axis=1),
        ],
        X,
    ),
    case("unstack", lambda tf, x: [*tf.unstack(x, axis=1), tf.unstack(x, axis=-1)[2]], X),
    case("unstack some", lambda tf, x: tf.unstack(x, 3, axis=1)[:2], X, shapes=[[None, None, 4]]),
    case("split", lambda tf, x: [*tf.split(x, 2, 2), *tf.split(x, 3, axis=1)], X),
    case(
        "split sizes",
        lambda tf, x: [*tf.split(x, [1, 3], 2), *tf.split(x, [-1, 1], axis=1)],
        X,
        shapes=[[None, 3, 4]],
    ),
    case("split sizes unknown", lambda tf, x: tf.split(x, [1, -1], 2), X, shapes=[[None, 3, None]]),
    case(
        "pack lists",
        lambda tf, x: [
            tf.convert_to_tensor([x[0, 0, 0], 2.0]),
            tf.convert_to_tensor([[1.0, x[0, 1, 1]], [2.0, 3.0]]),
        ],
        X,
    ),
    case("tile", lambda tf, x: [tf.tile(x, [1, 2, 3]), tf.tile(x, [0, 1, 1])], X, order=2),
    case(
        "tile by data",
        lambda tf, x, m: tf.tile(x, m),
        X,
        np.int32([2, 1, 2]),
        shapes=[[None, 3, 4], [3]],
    ),
    case(
        "pad",
        lambda tf, x: [
            tf.pad(x, [[1, 0], [0, 2], [3, 1]]),
            tf.pad(x, [[1, 1], [0, 0], [0, 1]], constant_values=2.5),
        ],
        X,
        order=2,
    ),
    case(
        "pad by data",
        lambda tf, x, p: tf.pad(x, p, constant_values=3.0),
        X,
        np.int32([[1, 0], [0, 2], [3, 1]]),
    ),
    case(
        "mirror pad",
        lambda tf, x: [
            tf.pad(x, [[1, 0], [2, 1], [3, 2]], "REFLECT"),
            tf.pad(x, [[2, 1], [3, 0], [0, 4]], "symmetric"),
        ],
        X,
        order=2,
    ),
    case("reverse", lambda tf, x: [tf.reverse(x, [0, -1]), tf.reverse(x, [1])], X),
    case(
        "reverse_sequence",
        lambda tf, x, n: [
            tf.reverse_sequence(x, n, 1),
            tf.reverse_sequence(x, n, seq_axis=2, batch_axis=0),
            tf.reverse_sequence(tf.transpose(x, [1, 0, 2]), n, 0, 1),
        ],
        X,
        np.int32([3, 2]),
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)
