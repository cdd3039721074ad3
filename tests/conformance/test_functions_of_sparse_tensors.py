"""Functions of dense tensors that take sparse ones too, against TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from runnel.ops.sparse.operators import OTHERS, UNARY
from tests.conformance.side_by_side import compare

CASTS = ("cast", "to_double", "to_float", "to_int32", "to_int64")
VALUES = np.array([4.0, 0.25, 9.0], np.float32)


def _given(tf, values):
    return tf.SparseTensor([[0, 1], [1, 0], [2, 3]], values, [3, 4])


@pytest.mark.parametrize("name", (*UNARY, *CASTS))
def test_a_function_of_the_values(name):
    def build(tf, values):
        more = [tf.float64] if name == "cast" else []
        found = getattr(tf, name)(_given(tf, values), *more)
        return [found.indices, found.values, found.dense_shape]

    compare(build, VALUES, order=0)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_what_is_asked_of_the_shape(name):
    def build(tf, values):
        given = _given(tf, values)
        sized = [getattr(tf, name)(given, out_type=tf.int64)] if name != "rank" else []
        return [getattr(tf, name)(given), getattr(tf, name)(input=given), *sized]

    compare(build, VALUES, order=0)
