"""Segment reductions compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import V, X, case  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

SEGMENT_IDS = np.int32([2, 0, 2, -1, 0])
CASES = (
    [
        case(
            f"unsorted_segment_{name}",
            lambda tf, v, i, name=name: [
                getattr(tf, f"unsorted_segment_{name}")(v, i, 4),
                getattr(tf, f"unsorted_segment_{name}")(tf.reshape(v[:4], [2, 2]), i[:2], 3),
            ],
            V,
            SEGMENT_IDS,
        )
        for name in ("sum", "max", "min", "prod")
    ]
    + [
        case(
            f"segment_{name}",
            lambda tf, v, i, name=name: [
                getattr(tf, f"segment_{name}")(v, i),
                getattr(tf, f"segment_{name}")(tf.reshape(v[:4], [2, 2]), i[3:]),
            ],
            V,
            np.int32([0, 0, 1, 3, 3]),
        )
        for name in ("sum", "mean", "max", "min", "prod")
    ]
    + [
        case(
            "unsorted_segment_sum matrix ids",
            lambda tf, x, i: tf.unsorted_segment_sum(x, i, 3),
            X,
            np.int32([[0, 2, 1], [0, 0, -1]]),
            order=2,
        ),
        case(
            "unsorted_segment_sum data",
            lambda tf, x, i, n: tf.unsorted_segment_sum(x, i, n),
            X,
            np.int32([1, 1]),
            np.int32(3),
            shapes=[[None, 3, 4], [None], []],
        ),
        case(
            "unsorted_segment_prod zeros",
            lambda tf, v, i: tf.unsorted_segment_prod(v, i, 3),
            np.float32([0, 2, 0, 3, 4]),
            np.int32([0, 0, 1, 1, 1]),
        ),
        case(
            "unsorted_segment_prod two zeros",
            lambda tf, v, i: tf.unsorted_segment_prod(v, i, 2),
            np.float32([0, 2, 0, 3, 4]),
            np.int32([0, 0, 0, 1, 1]),
        ),
        case(
            "unsorted_segment_max ties",
            lambda tf, v, i: tf.unsorted_segment_max(v, i, 2),
            np.float32([2, 2, 1, 3, 4]),
            np.int32([0, 0, 0, 1, 1]),
        ),
    ]
)


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)
