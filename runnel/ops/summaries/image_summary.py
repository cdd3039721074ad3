"""``ImageSummary``: pictures, as PNG."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from runnel.ops.summaries.serialized import (
    invalid,
    numbered_tag,
    register_summary_op,
    serialized,
    single,
    summary_class,
    text,
)

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_NEARLY_ZERO = 1e-6
"""An image whose largest value is smaller is shown black, and not its noise."""

image_summary_op = register_summary_op(
    "ImageSummary",
    inputs="tag: string, tensor: T",
    attrs=[
        "max_images: int >= 1 = 3",
        "T: {uint8, float, half, double} = DT_FLOAT",
        "bad_color: tensor = uint8[255, 0, 0, 255]",
    ],
)


@image_summary_op.kernel
def _(xp, tag, tensor, *, max_images, bad_color):
    name = text(single(tag, "tag"))
    images = np.asarray(tensor)
    if images.ndim != 4 or images.shape[3] not in _MODES:
        raise invalid(
            f"Tensor must be 4-D with last dim 1, 3, or 4, not {list(images.shape)}: images, rows, "
            "columns, channels"
        )
    _, height, width, channels = images.shape
    if not height or not width:
        raise invalid(f"An image of {height} rows and {width} columns has no pixel to show")
    color = np.asarray(bad_color)
    if color.dtype != np.uint8 or color.ndim != 1 or color.size < channels:
        raise invalid(
            f"bad_color must be a vector of at least {channels} uint8, one for each channel, not "
            f"{color.dtype.name} of shape {list(color.shape)}"
        )
    summary = summary_class()()
    for index, image in enumerate(images[:max_images]):
        value = summary.value.add(tag=numbered_tag(name, "image", index, max_images))
        shown = value.image
        shown.height, shown.width, shown.colorspace = height, width, channels
        pixels = image if image.dtype == np.uint8 else in_bytes(image, color[:channels])
        shown.encoded_image_string = png(pixels)
    return serialized(summary)


def in_bytes(image: np.ndarray, bad_color: np.ndarray) -> np.ndarray:
    """A picture of numbers, scaled into 0 to 255; pixels that are not finite in ``bad_color``.

    Zero stays black where nothing is negative, and is in the middle elsewhere.
    """
    good = np.isfinite(image).all(axis=-1)
    finite = image[good].astype(np.float32)
    low, high = (finite.min(), finite.max()) if finite.size else (np.float32(0), np.float32(0))
    largest = max(abs(low), abs(high)) if low < 0 else high
    span, offset = (127.0, 128.0) if low < 0 else (255.0, 0.0)
    scale = np.float32(0 if largest < _NEARLY_ZERO else np.float32(span) / largest)
    # In the element type of the image, as TensorFlow rounds.
    scaled = image[good] * scale.astype(image.dtype) + image.dtype.type(offset)
    pixels = np.empty(image.shape, np.uint8)
    pixels[good] = scaled.astype(np.uint8)
    pixels[~good] = bad_color
    return pixels


def png(pixels: np.ndarray) -> bytes:
    """``pixels`` (rows, columns, channels) as a PNG file."""
    from PIL import Image

    channels = pixels.shape[2]
    picture: Any = np.ascontiguousarray(pixels[..., 0] if channels == 1 else pixels)
    file = io.BytesIO()
    size = (pixels.shape[1], pixels.shape[0])
    Image.frombytes(_MODES[channels], size, picture.tobytes()).save(file, "PNG")
    return file.getvalue()
