"""Examples of operations on images."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from tests.conformance.exchange import Builder, Example, call

RNG = np.random.default_rng(0)


def picture(height: int = 29, width: int = 37, channels: int = 3) -> np.ndarray:
    """Smooth colours with a little noise, as photographs have."""
    rows, columns = np.mgrid[0:height, 0:width]
    waves = [np.sin(columns / 7), np.cos(rows / 9), np.sin((rows + columns) / 11), rows / height]
    image = np.stack(waves[:channels], axis=-1) * 120 + 120
    noise = np.random.default_rng(1).normal(0, 8, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def file(image: np.ndarray, kind: str, **how: Any) -> bytes:
    """``image`` as Pillow writes it."""
    out = io.BytesIO()
    bands = image[..., 0] if image.shape[-1] == 1 else image
    Image.fromarray(bands).save(out, kind, **how)
    return out.getvalue()


def bmp(image: np.ndarray, top_down: bool = False) -> bytes:
    """``image`` as an uncompressed BMP file."""
    height, width, channels = image.shape
    rows = image[..., [2, 1, 0, 3][:channels]] if channels > 1 else image
    rows = rows.reshape(height, -1) if top_down else rows[::-1].reshape(height, -1)
    rows = np.pad(rows, [(0, 0), (0, -rows.shape[1] % 4)])
    sizes = (54 + rows.size, 0, 54, 40, width, -height if top_down else height)
    head = b"BM" + struct.pack("<IIIIiiHHIIIIII", *sizes, 1, 8 * channels, *[0] * 6)
    return head + rows.tobytes()


def text(content: bytes) -> np.ndarray:
    made = np.empty((), object)
    made[()] = content
    return made


def and_back(decoder: str, *inputs: Any, **attrs: Any) -> Callable[[str], Example]:
    """An encoder, whose bytes may differ, and what a decoder reads in them."""

    def example_for(op_type: str) -> Example:
        def example(builder: Builder) -> list[list[str]]:
            return [builder.op(decoder, builder.one(op_type, *inputs, **attrs))]

        return example

    return example_for


ACCURATE = {"dct_method": "INTEGER_ACCURATE"}
COLOUR, GREY = picture(), picture(channels=1)
PLAIN = text(file(COLOUR, "JPEG", subsampling=0))
HALVED = text(file(COLOUR, "JPEG", quality=90, subsampling=2))
PNG = text(file(COLOUR, "PNG"))
IMAGES = RNG.random((2, 5, 7, 3)).astype(np.float32)
BYTES = RNG.integers(0, 256, (2, 5, 7, 3)).astype(np.uint8)
DEEP = RNG.integers(0, 65536, (5, 7, 3)).astype(np.uint16)
SIZE = [3, 11]
BOXES = np.array([[0.1, 0.2, 0.8, 0.9], [-0.2, 0, 0.5, 1.3], [0.5, 0.9, 0.5, 0.1]], np.float32)
OF = np.array([0, 1, 1], np.int32)
DRAWN = np.array([[[0.1, 0.2, 0.7, 0.9], [-0.5, 0.1, 0.4, 1.5]]] * 2, np.float32)
CORNERS = RNG.random((12, 4)).astype(np.float32)
SCORES = RNG.random(12).astype(np.float32)
CLASSES = RNG.random((2, 12, 3)).astype(np.float32)
VOLUME = RNG.random((1, 4, 5, 4, 2)).astype(np.float32)
GRADS = RNG.random((2, 3, 11, 3)).astype(np.float32)
CROP_GRADS = RNG.random((3, 4, 5, 3)).astype(np.float32)
TURN = np.array([[0.9, -0.3, 1.1, 0.35, 0.8, -0.4, 0.01, -0.02]], np.float32)
SCALE, SHIFT = np.array([0.7, 1.6], np.float32), np.array([0.5, -1.0], np.float32)
CENTERS, ALIGNED = {"half_pixel_centers": True}, {"align_corners": True}

EXAMPLES = {
    "DecodeJpeg": [
        call(PLAIN),
        call(HALVED, fancy_upscaling=False),
        call(HALVED, ratio=2),
        call(HALVED, channels=1, **ACCURATE),
        call(HALVED, channels=3, **ACCURATE),
        call(text(file(GREY, "JPEG")), channels=3),
        call(PNG),
    ],
    "DecodeAndCropJpeg": call(PLAIN, [3, 5, 10, 7]),
    "ExtractJpegShape": [call(HALVED), call(PLAIN, output_type=9)],
    "DecodePng": [
        call(PNG),
        call(PNG, channels=1),
        call(PNG, channels=4, dtype=17),
        call(text(file(GREY, "PNG")), channels=3),
        call(text(file(picture(channels=4), "PNG"))),
        call(text(file(picture(channels=4), "PNG")), channels=1),
        call(text(file(COLOUR[..., :2], "PNG"))),
        call(PLAIN),
    ],
    "DecodeGif": call(text(file(COLOUR, "GIF"))),
    "DecodeBmp": [
        call(text(bmp(COLOUR))),
        call(text(bmp(GREY))),
        call(text(bmp(picture(channels=4), top_down=True)), channels=4),
    ],
    "DecodeImage": [
        call(PNG, dtype=1),
        call(PLAIN, dtype=17),
        call(text(bmp(COLOUR))),
        call(text(file(COLOUR, "GIF")), expand_animations=False),
    ],
    "EncodePng": [
        and_back("DecodePng", COLOUR),
        and_back("DecodePng", GREY, compression=9),
        and_back("DecodePng", picture(channels=4)),
    ],
    "EncodeJpeg": [
        call(COLOUR, density_unit="cm", x_density=7, xmp_metadata="<x/>"),
        call(COLOUR, quality=50, chroma_downsampling=False, optimize_size=True),
        call(GREY, progressive=True),
    ],
    "EncodeJpegVariableQuality": call(COLOUR, 40),
    "ResizeBilinear": [
        call(IMAGES, SIZE),
        call(BYTES, SIZE, **ALIGNED),
        call(IMAGES, [11, 3], **CENTERS),
    ],
    "ResizeNearestNeighbor": [
        call(IMAGES, SIZE),
        call(BYTES, SIZE, **ALIGNED),
        call(BYTES, [11, 3], **CENTERS),
    ],
    "ResizeBicubic": [
        call(IMAGES, SIZE),
        call(BYTES, SIZE, **ALIGNED),
        call(IMAGES, [11, 3], **CENTERS),
    ],
    "ResizeArea": [call(IMAGES, SIZE), call(BYTES, [2, 3]), call(IMAGES, [9, 4], **ALIGNED)],
    "ResizeBilinearGrad": [call(GRADS, IMAGES), call(GRADS, IMAGES, **CENTERS)],
    "ResizeBicubicGrad": [call(GRADS, IMAGES), call(GRADS, IMAGES, **CENTERS)],
    "ResizeNearestNeighborGrad": [call(GRADS, [5, 7]), call(GRADS, [5, 7], **ALIGNED)],
    "ScaleAndTranslate": [
        call(IMAGES, SIZE, SCALE, SHIFT, kernel_type=kind, antialias=antialias)
        for kind, antialias in (
            ("lanczos3", True),
            ("triangle", True),
            ("keyscubic", False),
            ("mitchellcubic", True),
            ("gaussian", True),
        )
    ],
    "ImageProjectiveTransformV2": [
        call(IMAGES, TURN, SIZE, interpolation="NEAREST"),
        call(BYTES, TURN, [3, 9], interpolation="BILINEAR"),
    ],
    "ScaleAndTranslateGrad": call(GRADS, IMAGES, SCALE, SHIFT, kernel_type="triangle"),
    "CropAndResize": [
        call(IMAGES, BOXES, OF, [4, 5]),
        call(BYTES, BOXES, OF, [1, 3], extrapolation_value=7.0),
        call(IMAGES, BOXES, OF, [4, 5], method="nearest"),
    ],
    "CropAndResizeGradImage": [
        call(CROP_GRADS, BOXES, OF, [2, 5, 7, 3], T=1),
        call(CROP_GRADS, BOXES, OF, [2, 5, 7, 3], T=1, method="nearest"),
    ],
    "CropAndResizeGradBoxes": call(CROP_GRADS, IMAGES, BOXES, OF),
    "AdjustContrastv2": call(IMAGES, 1.7),
    "AdjustHue": call(IMAGES, 0.4),
    "AdjustSaturation": call(IMAGES, 1.6),
    "RGBToHSV": call(IMAGES),
    "HSVToRGB": call(IMAGES),
    "DrawBoundingBoxes": [call(IMAGES, DRAWN), call(IMAGES[..., :1], DRAWN)],
    "DrawBoundingBoxesV2": call(IMAGES, DRAWN, [[0.1, 0.2, 0.3]]),
    "NonMaxSuppression": call(CORNERS, SCORES, 6, iou_threshold=0.3),
    "NonMaxSuppressionV2": call(CORNERS, SCORES, 6, 0.2),
    "NonMaxSuppressionV3": call(CORNERS, SCORES, 6, 0.2, 0.3),
    "NonMaxSuppressionV4": [
        call(CORNERS, SCORES, 12, 0.1, 0.3, pad_to_max_output_size=True),
        call(CORNERS, SCORES, 12, 0.1, 0.3),
    ],
    "NonMaxSuppressionV5": [
        call(CORNERS, SCORES, 8, 0.1, 0.1, 0.5),
        call(CORNERS, SCORES, 8, 0.1, 0.3, 0.0, pad_to_max_output_size=True),
    ],
    "NonMaxSuppressionWithOverlaps": call(CORNERS @ CORNERS.T, SCORES, 5, 0.9, 0.2),
    "CombinedNonMaxSuppression": [
        call(np.stack([CORNERS * 1.5] * 2)[:, :, None], CLASSES, 3, 7, 0.3, 0.2),
        call(
            RNG.random((2, 12, 3, 4)).astype(np.float32),
            CLASSES,
            2,
            9,
            0.3,
            0.2,
            pad_per_class=True,
        ),
    ],
    "ExtractGlimpse": [
        call(IMAGES, [3, 4], [[0.1, 0.2], [-0.9, 0.8]], uniform_noise=False, noise="zero"),
        call(IMAGES, [2, 2], [[1.0, 2.0], [3.0, 1.0]], centered=False, normalized=False),
    ],
    "ExtractGlimpseV2": call(
        IMAGES,
        [3, 4],
        [[0.1, 0.2], [2.0, -1.0]],
        normalized=False,
        uniform_noise=False,
        noise="zero",
    ),
    "ExtractImagePatches": [
        call(IMAGES, ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding="SAME"),
        call(BYTES, ksizes=[1, 3, 3, 1], strides=[1, 1, 2, 1], rates=[1, 1, 1, 1], padding="VALID"),
    ],
    "ExtractVolumePatches": call(
        VOLUME, ksizes=[1, 2, 2, 3, 1], strides=[1, 1, 2, 1, 1], padding="SAME"
    ),
}
