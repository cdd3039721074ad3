"""Space to depth and to batch compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import IMAGE, case  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

CASES = [
    case(
        "space_to_depth",
        lambda tf, x: [tf.space_to_depth(x, 2), tf.space_to_depth(x[:, :4, :4], 4)],
        IMAGE,
    ),
    case("depth_to_space", lambda tf, x: tf.depth_to_space(x, 2), IMAGE, order=2),
    case(
        "space_to_batch_nd",
        lambda tf, x: [
            tf.space_to_batch_nd(x, [2, 3], [[0, 0], [1, 2]]),
            tf.space_to_batch_nd(x, [2], [[1, 1]]),
            tf.space_to_batch(x, [[0, 0], [0, 0]], 2),
        ],
        IMAGE,
        order=2,
    ),
    case(
        "batch_to_space_nd",
        lambda tf, x: [
            tf.batch_to_space_nd(tf.tile(x, [3, 1, 1, 1]), [2, 3], [[1, 0], [0, 2]]),
            tf.batch_to_space(tf.tile(x, [2, 1, 1, 1]), [[0, 1], [1, 0]], 2),
        ],
        IMAGE,
    ),
    case(
        "space unknown",
        lambda tf, x: [tf.space_to_depth(x, 2), tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]])],
        IMAGE,
        shapes=[[None, None, 6, 8]],
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)
