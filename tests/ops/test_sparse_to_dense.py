"""Vectors made of values and their places, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf


def dense(places, size, values, default, **how):
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.int64, [None])
        return session.run(
            tf.sparse_to_dense(given, [size], values, default, **how), {given: places}
        )


@pytest.mark.parametrize("places", [[], [0], [4], [0, 2, 3], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize(
    "values, default",
    [
        (np.array([1.5, 2.5, 3.5, 4.5, 5.5], np.float32), np.float32(-1)),
        (np.array([b"a", b"b", b"c", b"d", b"e"], object), b"none"),
    ],
)
def test_values_stand_at_their_places_and_the_default_elsewhere(places, values, default):
    right = [default] * 5
    for place, value in zip(places, values, strict=False):
        right[place] = value
    assert dense(places, 5, values[: len(places)], default).tolist() == right


def test_one_value_stands_at_every_place():
    assert dense([1, 3], 5, 7, 0).tolist() == [0, 7, 0, 7, 0]


@pytest.mark.parametrize(
    "places, how",
    [
        ([1, 5], "out of bounds"),
        ([-1, 2], "out of bounds"),
        ([2, 2], "repeated"),
        ([3, 1], "order"),
    ],
)
def test_places_that_cannot_be(places, how):
    with pytest.raises(tf.errors.InvalidArgumentError, match=how):
        dense(places, 5, [1, 2], 0)


def test_places_in_any_order_where_they_are_not_validated():
    assert dense([3, 1, 1], 4, [1, 2, 3], 0, validate_indices=False).tolist() == [0, 3, 0, 1]
