"""JPEG files that simplejpeg decodes: Pillow is the oracle, and has what simplejpeg refuses."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import runnel as tf
from runnel.ops.image import turbo_jpeg
from runnel.ops.image.jpeg import read_jpeg

needs_package = pytest.mark.skipif(
    turbo_jpeg.simplejpeg() is None, reason="the package simplejpeg is not installed"
)
RNG = np.random.default_rng(0)
PICTURE = RNG.integers(0, 256, (5, 7, 3)).astype(np.uint8).repeat(9, 0).repeat(8, 1)


def file(image: np.ndarray = PICTURE, mode: str = "RGB", **how: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).convert(mode).save(out, "JPEG", quality=85, **how)
    return out.getvalue()


def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turbo_jpeg, "simplejpeg", lambda: None)


@needs_package
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_the_accurate_transform_gives_pillows_pixels(subsampling, progressive):
    content = file(subsampling=subsampling, progressive=progressive)
    found = turbo_jpeg.read_directly(content, 0, accurate=True)
    np.testing.assert_array_equal(found, np.asarray(Image.open(io.BytesIO(content))))


@needs_package
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_both_decoders_give_images_of_the_same_shape(monkeypatch, mode, channels, ratio):
    contents = [
        file(PICTURE[:rows, :columns], mode) for rows, columns in ((45, 56), (9, 8), (2, 3))
    ]
    both = [read_jpeg(content, channels, ratio) for content in contents]
    without_package(monkeypatch)
    for found, content in zip(both, contents, strict=True):
        other = read_jpeg(content, channels, ratio)
        assert found.shape == other.shape
        assert np.abs(found.astype(int) - other).mean() < 3


@needs_package
@pytest.mark.parametrize(
    "content",
    [file()[:400], file()[:2], b"", b"\xff\xd8\xff nonsense", file(mode="CMYK")],
    ids=["cut", "no header", "empty", "no file", "inks"],
)
def test_what_is_damaged_or_unusual_is_left_to_pillow(content):
    assert turbo_jpeg.read_directly(content, 0) is None


@needs_package
def test_an_image_that_is_too_large_is_refused_before_it_has_memory():
    content = bytearray(file())
    at = content.index(b"\xff\xc0") + 5
    content[at : at + 4] = (60_000).to_bytes(2, "big") * 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
        turbo_jpeg.read_directly(bytes(content), 3)


def test_files_are_decoded_without_the_package(monkeypatch):
    without_package(monkeypatch)
    found = read_jpeg(file(subsampling=0), dct_method="INTEGER_ACCURATE")
    np.testing.assert_array_equal(found, np.asarray(Image.open(io.BytesIO(file(subsampling=0)))))
