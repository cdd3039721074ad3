"""Enlarging images, against Pillow, which aligns pixel centres too."""

import numpy as np
import pytest
from PIL import Image

from runnel.datasets.enlarge import centre_in_frame, enlarge

PIXELS = np.random.default_rng(0).random((3, 8, 8)).astype(np.float32)


# For "nearest", sizes at which no centre falls between two pixels: there both are as near.
@pytest.mark.parametrize(
    ("interpolation", "size"),
    [("bilinear", size) for size in (8, 13, 20, 28)] + [("nearest", size) for size in (8, 16, 24)],
)
def test_enlarging_agrees_with_pillow(interpolation, size):
    method = Image.Resampling[interpolation.upper()]
    expected = [np.asarray(Image.fromarray(image).resize((size, size), method)) for image in PIXELS]
    np.testing.assert_allclose(enlarge(PIXELS, size, interpolation), expected, atol=1e-6)


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_integers_stay_integers_within_their_range(interpolation):
    pixels = (PIXELS * 16).astype(np.uint8)
    drawn = enlarge(pixels, 20, interpolation)
    assert drawn.dtype == np.uint8
    assert pixels.min() <= drawn.min() and drawn.max() <= pixels.max()


def test_a_frame_surrounds_the_image():
    framed = centre_in_frame(PIXELS, 13)
    assert framed.shape == (3, 13, 13)
    np.testing.assert_array_equal(framed[:, 2:10, 2:10], PIXELS)
    assert np.count_nonzero(framed) == np.count_nonzero(PIXELS)
