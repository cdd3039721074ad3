"""Bytes of any image format as pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import as_dtype
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.image.bmp import read_bmp
from runnel.ops.image.gif import read_gif
from runnel.ops.image.image_files import format_of, one_string, refuse
from runnel.ops.image.jpeg import DECODING, decoded_dims, read_jpeg
from runnel.ops.image.png import read_png

_HOST: dict[str, Any] = {"host": True, "differentiable": False}
_CHANNELS = "channels: int = 0"
_CONTENTS = "contents: string"

decode_jpeg_op = register_op("DecodeJpeg", _CONTENTS, "image: uint8", DECODING, **_HOST)
decode_png_op = register_op(
    "DecodePng",
    _CONTENTS,
    "image: dtype",
    [_CHANNELS, "dtype: {uint8, uint16} = DT_UINT8"],
    **_HOST,
)
decode_gif_op = register_op("DecodeGif", _CONTENTS, "image: uint8", **_HOST)
decode_bmp_op = register_op("DecodeBmp", _CONTENTS, "image: uint8", _CHANNELS, **_HOST)
decode_image_op = register_op(
    "DecodeImage",
    _CONTENTS,
    "image: dtype",
    [
        _CHANNELS,
        "dtype: {uint8, uint16, float} = DT_UINT8",
        "expand_animations: bool = true",
    ],
    **_HOST,
)


@decode_jpeg_op.shape
def _(contents, *, channels):
    return decoded_dims(channels)


@decode_png_op.shape
def _(contents, *, channels):
    return decoded_dims(channels)


@decode_bmp_op.shape
def _(contents, *, channels):
    return decoded_dims(channels)


@decode_gif_op.shape
def _(contents):
    return (None, None, None, 3)


@decode_image_op.shape
def _(contents, *, channels, expand_animations):
    return None if expand_animations else decoded_dims(channels)


def _single(contents: bytes, channels: int, dtype: Any = np.uint8, **how: Any) -> np.ndarray:
    """One image from a JPEG or PNG file, or from a GIF file of one frame."""
    name = format_of(contents)
    if name == "PNG":
        return read_png(contents, channels, dtype)
    if name == "BMP":
        refuse("Trying to decode BMP format using a wrong op: use decode_bmp or decode_image")
    if name == "GIF":
        if channels not in (0, 3):
            refuse(f"channels must be 0 or 3 for GIF, not {channels}")
        frames = read_gif(contents)
        if len(frames) != 1:
            refuse(f"Got {len(frames)} frames, but animated gifs can only be decoded by decode_gif")
        pixels = frames[0]
    else:
        pixels = read_jpeg(contents, channels, **how)
    return pixels if dtype == np.uint8 else pixels.astype(np.uint16) << 8


@decode_jpeg_op.kernel
def _(
    xp,
    contents,
    *,
    channels,
    ratio,
    fancy_upscaling,
    try_recover_truncated,
    acceptable_fraction,
    dct_method,
):
    return _single(
        one_string(contents),
        channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
    )


@decode_png_op.kernel
def _(xp, contents, *, channels, dtype):
    return _single(one_string(contents), channels, dtype.np_dtype)


@decode_gif_op.kernel
def _(xp, contents):
    data = one_string(contents)
    if format_of(data) != "GIF":
        return _single(data, 3)[None]
    return read_gif(data)


@decode_bmp_op.kernel
def _(xp, contents, *, channels):
    data = one_string(contents)
    if format_of(data) != "BMP":
        refuse("Trying to decode another format than BMP with decode_bmp: use decode_image")
    return read_bmp(data, channels)


@decode_image_op.kernel
def _(xp, contents, *, channels, dtype, expand_animations):
    data = one_string(contents)
    name = format_of(data)
    wanted = np.uint16 if dtype is dtypes.uint16 else np.uint8
    if name == "GIF":
        pixels = read_gif(data, only_first=not expand_animations)
        pixels = pixels if expand_animations else pixels[0]
        if channels not in (0, 3):
            refuse(f"channels must be 0 or 3 for GIF, not {channels}")
    elif name == "BMP":
        pixels = read_bmp(data, channels)
    elif name == "PNG":
        deep = dtype is not dtypes.uint8
        pixels = read_png(data, channels, np.uint16 if deep else np.uint8)
    else:
        pixels = read_jpeg(data, channels)
    if dtype is dtypes.float32:
        return pixels.astype(np.float32) * np.float32(1 / np.iinfo(pixels.dtype).max)
    return pixels if pixels.dtype == wanted else pixels.astype(np.uint16) << 8


# Functions ------------------------------------------------------------------------------------


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """The image in a JPEG file, uint8; ``channels`` 1 makes it grey, 3 coloured, 0 as it is.

    ``ratio`` 2, 4 or 8 decodes an image that much smaller, and faster.

    Example:
        >>> tf.image.decode_jpeg(tf.read_file("cat.jpg"), channels=3)
    """
    return decode_jpeg_op(
        contents,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=float(acceptable_fraction),
        dct_method=dct_method,
        name=name,
    )


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The image in a PNG file, uint8 or uint16; ``channels`` 1, 3 or 4, 0 for as many as it has."""
    return decode_png_op(contents, channels=channels, dtype=as_dtype(dtype), name=name)


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """The frames of a GIF file, ``[frames, height, width, 3]``."""
    return decode_gif_op(contents, name=name)


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """The image in an uncompressed BMP file."""
    return decode_bmp_op(contents, channels=channels, name=name)


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """The image in a JPEG, PNG, GIF or BMP file; the static shape is not known.

    A GIF file gives four dimensions, the frames first; ``expand_animations=False`` has it give
    only the first frame, so that all files give three.
    """
    return decode_image_op(
        contents,
        channels=0 if channels is None else channels,
        dtype=as_dtype(dtype),
        expand_animations=expand_animations,
        name=name,
    )
