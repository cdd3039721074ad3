"""Diagonals and bands compared with TensorFlow."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tensorflow")

from tests.conformance.cases import MATRIX, X, case  # noqa: E402
from tests.conformance.side_by_side import compare  # noqa: E402

CASES = [
    case(
        "matrix_diag",
        lambda tf, x: [
            tf.matrix_diag(x),
            tf.matrix_diag(x[0, 0], k=1),
            tf.matrix_diag(x[0, 0], k=-2, num_rows=6, num_cols=5, padding_value=7.0),
        ],
        X,
        order=2,
    ),
    case(
        "matrix_diag band",
        lambda tf, x: [
            tf.matrix_diag(x, k=(-1, 1), align=a)
            for a in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
        ],
        X,
    ),
    case("matrix_diag unknown", lambda tf, x: tf.matrix_diag(x), X, shapes=[[None, 3, None]]),
    case(
        "matrix_diag_part",
        lambda tf, x: [
            tf.matrix_diag_part(x),
            tf.matrix_diag_part(x, k=2),
            tf.matrix_diag_part(x, k=-1),
        ],
        MATRIX,
        order=2,
    ),
    case(
        "matrix_diag_part band",
        lambda tf, x: [
            tf.matrix_diag_part(x, k=k, align=a, padding_value=9.0)
            for k in ((-1, 2), (1, 3), (-2, -1))
            for a in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
        ],
        MATRIX,
    ),
    case(
        "matrix_set_diag",
        lambda tf, x, y: [
            tf.matrix_set_diag(x, y[:, :, 0]),
            tf.matrix_set_diag(x, y[:, :, 1], k=2),
            tf.matrix_set_diag(x, y[:, :, :3], k=(0, 2)),
        ],
        MATRIX,
        MATRIX + 1,
    ),
    case(
        "matrix_band_part",
        lambda tf, x: [
            tf.matrix_band_part(x, 1, 2),
            tf.matrix_band_part(x, -1, 0),
            tf.matrix_band_part(x, 0, -1),
        ],
        MATRIX,
        order=2,
    ),
    case(
        "diag",
        lambda tf, x: [tf.diag(x[0]), tf.diag_part(tf.diag(x[0])), tf.diag_part(x[0, :, :3])],
        X,
    ),
]


@pytest.mark.parametrize(("build", "arrays", "options"), CASES)
def test_same_as_tensorflow(build: Any, arrays: Any, options: Any) -> None:
    compare(build, *arrays, **options)
