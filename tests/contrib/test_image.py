"""``tf.contrib.image`` and ``tf.contrib.resampler`` beside NumPy, SciPy and TensorFlow 1.15.5."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

import runnel as tf
from tests.both_tiers import COMPILED, INTERPRETED, session

RNG = np.random.default_rng(3)
TIERS = pytest.mark.parametrize("tier", [INTERPRETED, COMPILED], ids=["interpreted", "compiled"])

# Matrices with equal elements, and how TensorFlow 1.15.5 matches them.
WITH_TIES = [
    ([[0, 2], [1, 0], [0, 2]], [0, 1, -1], [0, 1]),
    ([[1, 1, 1], [0, 1, 1]], [2, 0], [1, -1, 0]),
    ([[1, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1]], [-1, 1, 2, 0], [3, 1, 2]),
    ([[1, 2, 2, 0, 2, 1], [0, 1, 1, 1, 0, 1]], [3, 0], [1, -1, -1, 0, -1, -1]),
    ([[0, 0, 0], [0, 2, 0], [2, 1, 1], [1, 1, 0]], [0, 2, -1, 1], [0, 3, 1]),
]


def _greedy(distances, valid, most):
    rows, columns = np.full(len(distances), -1), np.full(distances.shape[1], -1)
    for place in np.argsort(distances[:valid], axis=None):
        row, column = np.unravel_index(place, (valid, distances.shape[1]))
        if rows[row] == columns[column] == -1 and (most <= 0 or (rows >= 0).sum() < most):
            rows[row], columns[column] = column, row
    return rows, columns


@pytest.mark.parametrize(("valid", "most"), [(-1, -1), (4, -1), (0, -1), (6, 2), (-1, 1)])
def test_the_nearest_pairs_are_matched_first(valid, most):
    distances = RNG.random((6, 5)).astype(np.float32)
    found = tf.contrib.image.bipartite_match(distances, valid, top_k=most)
    with tf.Session() as sess:
        expected = _greedy(distances, 6 if valid < 0 else valid, most)
        for got, of in zip(sess.run(found), expected, strict=True):
            np.testing.assert_array_equal(got, of)
    assert [part.shape.as_list() for part in found] == [[6], [5]]


@pytest.mark.parametrize(("distances", "rows", "columns"), WITH_TIES)
def test_equal_distances_are_matched_in_tensorflows_order(distances, rows, columns):
    with tf.Session() as sess:
        found = sess.run(tf.contrib.image.bipartite_match(np.float32(distances), -1))
    np.testing.assert_array_equal(found[0], rows)
    np.testing.assert_array_equal(found[1], columns)


def test_what_cannot_be_matched_is_an_error_that_names_the_shape():
    with pytest.raises(ValueError, match=r"matrix, not of shape \(3,\)"):
        tf.contrib.image.bipartite_match([1.0, 2.0, 3.0], -1)
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="has 1 rows, of which 2"),
    ):
        sess.run(tf.contrib.image.bipartite_match([[1.0]], 2))


IMAGES = RNG.normal(size=(2, 5, 6, 3))
PLACES = RNG.uniform(-2, 7, size=(2, 4, 3, 2))
PLACES[0, 0] = [[0, 0], [5, 4], [-1, 2]]


@TIERS
def test_images_are_read_between_their_pixels_and_zero_outside(tier):
    found = tf.contrib.resampler.resampler(tf.constant(IMAGES), tf.constant(PLACES))
    assert found.shape.as_list() == [2, 4, 3, 3]
    expected = np.empty((2, 4, 3, 3))
    for image, places, out in zip(IMAGES, PLACES, expected, strict=True):
        for channel in range(3):
            out[..., channel] = ndimage.map_coordinates(
                np.pad(image[..., channel], 4), np.moveaxis(places[..., ::-1] + 4, -1, 0), order=1
            )
    with session(tier) as sess:
        np.testing.assert_allclose(sess.run(found), expected, atol=1e-12)


@TIERS
@pytest.mark.parametrize("shape", [(2, 2), (2, 7, 2), (2, 2, 3, 2)])
def test_images_and_places_have_gradients(tier, shape):
    places = RNG.uniform(0.1, 0.9, size=shape) + RNG.integers(-2, 6, size=shape)
    data, warp = tf.constant(IMAGES), tf.constant(places)
    found = tf.contrib.resampler.resampler(data, warp)
    weights = tf.constant(RNG.normal(size=found.shape.as_list()))
    with session(tier) as sess, sess.as_default():
        for x, value in ((data, IMAGES), (warp, places)):
            theory, measured = tf.test.compute_gradient(
                x,
                value.shape,
                found * weights,
                found.shape.as_list(),
                x_init_value=value,
                delta=1e-5,
            )
            np.testing.assert_allclose(theory, measured, atol=1e-6)


def test_the_shapes_of_images_and_places_must_fit():
    with pytest.raises(ValueError, match="rank 4"):
        tf.contrib.resampler.resampler(IMAGES[0], PLACES)
    with pytest.raises(ValueError, match=r"\[batch, ..., 2\]"):
        tf.contrib.resampler.resampler(IMAGES, PLACES[..., :1])
