"""PNG: decoding into the channels and the type that are asked for, and encoding."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.image.image_files import (
    opened,
    pixels_of,
    refuse,
    require_channels,
    require_size,
)
from runnel.ops.image.png_samples import is_deep, read_deep, write_deep

encode_png_op = register_op(
    "EncodePng",
    "image: T",
    "contents: string",
    ["compression: int = -1", "T: {uint8, uint16} = DT_UINT8"],
    host=True,
    differentiable=False,
)


def read_png(contents: bytes, channels: int, dtype: Any) -> np.ndarray:
    """The pixels of a PNG file as uint8 or uint16 ``dtype``, in ``channels`` or its own (0)."""
    require_channels(channels, (0, 1, 3, 4), "PNG")
    if is_deep(contents):
        samples, marked = read_deep(contents)
        samples = _with_mark(samples, marked, channels)
    else:
        samples = _shallow(contents, channels)
    samples = _in_channels(samples, channels)
    if samples.dtype == dtype:
        return np.ascontiguousarray(samples)
    if dtype == np.uint8:
        return (samples >> 8).astype(np.uint8)
    return samples.astype(np.uint16) * 257


def _with_mark(samples: np.ndarray, marked: tuple[int, ...] | None, channels: int) -> np.ndarray:
    """``samples`` with a channel that says where they are not the transparent colour."""
    if marked is None or channels != 4:
        return samples
    opaque = (samples != np.array(marked, samples.dtype)).any(axis=-1, keepdims=True)
    top = np.array(np.iinfo(samples.dtype).max, samples.dtype)
    return np.concatenate([samples, opaque * top], axis=-1)


def _shallow(contents: bytes, channels: int) -> np.ndarray:
    """The samples of a file with at most 8 bits for each."""
    with opened(contents, "PNG") as image:
        require_size(image.height, image.width, 4)
        marked = image.info.get("transparency")
        if image.mode == "P":
            image = image.convert("RGB" if marked is None else "RGBA")
            return pixels_of(image)
        if image.mode == "1":
            image = image.convert("L")
            marked = None if marked is None else 255 * bool(marked)
        pixels = pixels_of(image)
    if isinstance(marked, int):
        marked = (marked,)
    return _with_mark(pixels, marked, channels)


def _in_channels(samples: np.ndarray, channels: int) -> np.ndarray:
    """``samples`` with colours, and with transparency, if ``channels`` has them."""
    have = samples.shape[-1]
    if channels in (0, have):
        return samples
    alpha = samples[..., have - 1 :] if have in (2, 4) else None
    colours = samples[..., : have - 1] if alpha is not None else samples
    if channels == 1 and colours.shape[-1] == 3:
        colours = _grey(colours)
    elif channels > 1 and colours.shape[-1] == 1:
        colours = np.repeat(colours, 3, axis=-1)
    if channels < 4:
        return colours
    if alpha is None:
        top = np.iinfo(samples.dtype).max
        alpha = np.full((*samples.shape[:2], 1), top, samples.dtype)
    return np.concatenate([colours, alpha], axis=-1)


def _grey(colours: np.ndarray) -> np.ndarray:
    """Brightness as libpng computes it for TensorFlow, in integers."""
    weights = np.array(_WEIGHTS, np.uint64)
    total = (colours.astype(np.uint64) * weights).sum(axis=-1, keepdims=True)
    # Grey pixels stay as they are; others round down for bytes, to the nearest for 16 bits.
    rounding = np.uint64(16384 if colours.dtype == np.uint16 else 0)
    mixed = ((total + rounding) >> np.uint64(15)).astype(colours.dtype)
    first = colours[..., :1]
    plain = (colours == first).all(axis=-1, keepdims=True)
    return np.where(plain, first, mixed)


_WEIGHTS = (9797, 19234, 3737)  # of 32768


@encode_png_op.shape
def _(image):
    return ()


@encode_png_op.kernel
def _(xp, image, *, compression):
    if image.ndim != 3:
        refuse(f"image must be 3-dimensional, not of shape {list(image.shape)}")
    if 0 in image.shape:
        refuse(f"image must have pixels, but its shape is {list(image.shape)}")
    require_channels(image.shape[-1], (1, 2, 3, 4), "PNG")
    if not -1 <= compression <= 9:
        refuse(f"compression must be in [-1, 9], got {compression}")
    out = np.empty((), object)
    out[()] = write_png(image, compression)
    return out


def write_png(image: np.ndarray, compression: int) -> bytes:
    """``image``, uint8 or uint16 samples of one to four channels, as a PNG file."""
    from PIL import Image

    if image.dtype == np.uint16:
        return write_deep(image, compression)
    file = io.BytesIO()
    bands = image[..., 0] if image.shape[-1] == 1 else image
    Image.fromarray(bands).save(file, "PNG", compress_level=6 if compression < 0 else compression)
    return file.getvalue()


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """An image of uint8 or uint16, ``[height, width, 1 to 4]``, as a PNG file.

    ``compression`` from 0 (fast) to 9 (small); -1 for what zlib thinks best.

    Example:
        >>> tf.write_file("small.png", tf.image.encode_png(image))
    """
    return encode_png_op(image, compression=compression, name=name)
