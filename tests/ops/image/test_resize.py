"""Resizing: against plain definitions, and gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import runnel as tf
from tests.both_tiers import run_both

RNG = np.random.default_rng(3)
IMAGES = RNG.random((1, 4, 5, 2))


def test_an_image_of_the_same_size_is_unchanged():
    for resize in (
        tf.image.resize_bilinear,
        tf.image.resize_bicubic,
        tf.image.resize_area,
        tf.image.resize_nearest_neighbor,
    ):
        found = run_both(resize(IMAGES.astype(np.float32), [4, 5]))
        np.testing.assert_allclose(found, IMAGES, rtol=1e-6)


def test_aligned_corners_keep_the_corners():
    found = run_both(tf.image.resize_bilinear(IMAGES, [7, 9], align_corners=True))
    for rows, columns in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        np.testing.assert_allclose(found[0, rows, columns], IMAGES[0, rows, columns], rtol=1e-6)


def test_half_of_the_size_by_area_is_the_mean_of_four_pixels():
    images = RNG.random((2, 6, 8, 3)).astype(np.float32)
    expected = images.reshape(2, 3, 2, 4, 2, 3).mean(axis=(2, 4))
    np.testing.assert_allclose(run_both(tf.image.resize_area(images, [3, 4])), expected, rtol=1e-5)


@pytest.mark.parametrize("rule", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize("method", ["resize_bilinear", "resize_bicubic"])
def test_gradients_are_the_slopes(method, rule):
    x = tf.constant(IMAGES)
    y = getattr(tf.image, method)(x, [6, 3], **rule)
    with tf.Session():
        assert tf.test.compute_gradient_error(x, IMAGES.shape, y, [1, 6, 3, 2]) < 2e-3


def test_a_size_that_only_the_step_knows():
    size = tf.placeholder(tf.int32, [2])
    y = tf.image.resize_images(tf.constant(IMAGES), size)
    assert y.shape.as_list() == [1, None, None, 2]
    with tf.Session() as sess:
        for wanted in ([2, 3], [9, 1]):
            assert sess.run(y, {size: wanted}).shape == (1, *wanted, 2)
