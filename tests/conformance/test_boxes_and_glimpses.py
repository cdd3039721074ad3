"""Boxes that overlap, glimpses, and compressed strings: what TensorFlow gives."""

from __future__ import annotations

import gzip
import zlib

import numpy as np
import pytest

import runnel
from tests.conformance.same_fetches import assert_same_fetches

reference = pytest.importorskip("tensorflow").compat.v1
reference.disable_v2_behavior()

RNG = np.random.default_rng(3)
CORNERS = RNG.uniform(0, 1, (20, 2, 2)).astype(np.float32)
BOXES = np.concatenate([CORNERS.min(1), CORNERS.max(1)], 1)
SCORES = RNG.uniform(0, 1, 20).astype(np.float32)
OVERLAPS = RNG.uniform(0, 1, (20, 20)).astype(np.float32)
IMAGES = RNG.uniform(0, 1, (2, 7, 9, 3)).astype(np.float32)

PROGRAMS = {
    "overlaps": lambda tf: tf.image.non_max_suppression_overlaps(OVERLAPS, SCORES, 6, 0.5, 0.2),
    "with scores": lambda tf: tf.image.non_max_suppression_with_scores(
        BOXES, SCORES, 8, 0.4, 0.1, soft_nms_sigma=0.5
    ),
    "with scores, hard": lambda tf: tf.image.non_max_suppression_with_scores(BOXES, SCORES, 8, 0.4),
    "padded": lambda tf: tf.image.non_max_suppression_padded(
        BOXES, SCORES, 15, 0.3, 0.2, pad_to_max_output_size=True
    ),
    "not padded": lambda tf: tf.image.non_max_suppression_padded(
        tf.constant(BOXES), tf.constant(SCORES), 15, 0.3, 0.2
    ),
    "combined": lambda tf: list(
        tf.image.combined_non_max_suppression(
            BOXES.reshape(2, 10, 1, 4), SCORES.reshape(2, 10, 1), 4, 6, 0.5, 0.1
        )
    ),
    "combined by class": lambda tf: list(
        tf.image.combined_non_max_suppression(
            BOXES.reshape(1, 10, 2, 4),
            SCORES.reshape(1, 10, 2),
            3,
            5,
            0.5,
            0.2,
            pad_per_class=True,
            clip_boxes=False,
        )
    ),
    "glimpse": lambda tf: tf.image.extract_glimpse(
        IMAGES, [3, 5], [[0.0, 0.0], [0.4, -0.3]], uniform_noise=False
    ),
    "glimpse in pixels": lambda tf: tf.image.extract_glimpse(
        IMAGES, [3, 3], [[3.0, 4.0], [2.0, 2.0]], centered=False, normalized=False
    ),
    "inflated": lambda tf: [
        tf.io.decode_compressed([zlib.compress(b"abc" * 50), zlib.compress(b"")], "ZLIB"),
        tf.io.decode_compressed([[gzip.compress(b"xyz")]], "GZIP"),
        tf.io.decode_compressed(["as it is"]),
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_the_same(name):
    assert_same_fetches(PROGRAMS[name])


@pytest.mark.parametrize("kind", ["ZLIB", "GZIP"])
def test_both_refuse_what_is_not_compressed(kind):
    for tf in (runnel, reference):
        with tf.Graph().as_default(), tf.Session() as sess, pytest.raises(tf.errors.OpError):
            sess.run(tf.io.decode_compressed(["no such thing"], kind))


def test_a_random_quality_is_one_of_those_asked_for():
    """Compressed at a quality that is drawn, an image is as at one of the fixed ones."""
    image = (IMAGES[0] * 255).astype(np.uint8)
    with runnel.Graph().as_default(), runnel.Session() as sess:
        fixed = [runnel.image.adjust_jpeg_quality(image, quality) for quality in range(40, 44)]
        drawn = runnel.image.random_jpeg_quality(image, 40, 44, seed=1)
        allowed = [one.tobytes() for one in sess.run(fixed)]
        found = [sess.run(drawn) for _ in range(8)]
    assert all(one.tobytes() in allowed for one in found)
    for low, high in ((-1, 50), (50, 40), (10, 101)):
        for tf in (runnel, reference):
            with tf.Graph().as_default(), pytest.raises(ValueError):
                tf.image.random_jpeg_quality(image, low, high)
