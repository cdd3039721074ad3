"""JPEG: decoding, whole or a part, encoding, and what its loss does to an image.

`turbo_jpeg.py` decodes most files, where its package is installed; Pillow the others. It can ask
libjpeg-turbo for the accurate transform with smooth upsampling of colours, or for the fast one with
plain upsampling. TensorFlow's default, the fast transform with smooth upsampling, it cannot: where
a file's colours are subsampled, the accurate transform takes its place, whose values differ by a
few units of 255.
"""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.constant_value import constant_value
from runnel.graph.conversion import convert_to_tensor
from runnel.graph.graph import name_scope
from runnel.graph.operation import Tensor
from runnel.graph.registry import register_op
from runnel.ops.comparison import equal
from runnel.ops.image.image_dtype import convert_image_dtype
from runnel.ops.image.image_files import (
    one_string,
    opened,
    pixels_of,
    refuse,
    require_channels,
    require_size,
)
from runnel.ops.image.turbo_jpeg import read_directly
from runnel.ops.sampling.random import random_uniform
from runnel.ops.strings.characters import substr
from runnel.ops.strings.texts import encoded

_HOST: dict[str, Any] = {"host": True, "differentiable": False}
DECODING = [
    "channels: int = 0",
    "ratio: int = 1",
    "fancy_upscaling: bool = true",
    "try_recover_truncated: bool = false",
    "acceptable_fraction: float = 1.0",
    "dct_method: string = ''",
]

decode_and_crop_jpeg_op = register_op(
    "DecodeAndCropJpeg",
    "contents: string, crop_window: int32",
    "image: uint8",
    DECODING,
    **_HOST,
)
extract_jpeg_shape_op = register_op(
    "ExtractJpegShape",
    "contents: string",
    "image_shape: output_type",
    "output_type: {int32, int64} = DT_INT32",
    **_HOST,
)
encode_jpeg_op = register_op(
    "EncodeJpeg",
    "image: uint8",
    "contents: string",
    [
        "format: {'', 'grayscale', 'rgb'} = ''",
        "quality: int = 95",
        "progressive: bool = false",
        "optimize_size: bool = false",
        "chroma_downsampling: bool = true",
        "density_unit: {'in', 'cm'} = 'in'",
        "x_density: int = 300",
        "y_density: int = 300",
        "xmp_metadata: string = ''",
    ],
    **_HOST,
)
encode_jpeg_variable_quality_op = register_op(
    "EncodeJpegVariableQuality", "images: uint8, quality: int32", "contents: string", **_HOST
)


# Decoding -------------------------------------------------------------------------------------


def read_jpeg(
    contents: bytes,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str | bytes = "",
) -> np.ndarray:
    """The pixels of a JPEG file; ``ratio`` 2, 4 or 8 decodes it that much smaller."""
    require_channels(channels, (0, 1, 3), "JPEG")
    if ratio not in (1, 2, 4, 8):
        refuse(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    method = encoded(dct_method)
    if method not in (b"", b"INTEGER_FAST", b"INTEGER_ACCURATE"):
        refuse(f"dct_method must be '', 'INTEGER_FAST' or 'INTEGER_ACCURATE', not {method!r}")
    accurate = method == b"INTEGER_ACCURATE"
    recover = try_recover_truncated or acceptable_fraction < 1
    found = read_directly(contents, channels, ratio, fancy_upscaling, accurate, recover)
    if found is not None:
        return found
    if recover:
        contents += b"\xff\xd9"  # the end that a file that was cut lacks
    with opened(contents, "JPEG") as image:
        width, height = image.size
        require_size(-(-height // ratio), -(-width // ratio), len(image.getbands()))
        plain = not fancy_upscaling or (not accurate and not _is_upsampled(image, ratio))
        # A little more than ``ratio``: Pillow takes the largest scale that does not go below.
        smaller = (width / (ratio + 0.25), height / (ratio + 0.25))
        image.draft("L" if channels == 1 else None, smaller)
        image.decoderconfig = (ratio, int(plain))
        pixels = pixels_of(image)
    return _in_channels(pixels, channels)


def _is_upsampled(image: Any, ratio: int) -> bool:
    """True when colours were stored in fewer pixels than the image will have."""
    factors = [(across, down) for _, across, down, _ in image.layer]
    across, down = (max(sizes) for sizes in zip(*factors, strict=True))
    kept = {(across // a, down // d) for a, d in factors}
    # A scaled transform gives colours of half the size their full size at once.
    return not kept <= ({(1, 1), (2, 2)} if ratio > 1 else {(1, 1)})


def _in_channels(pixels: np.ndarray, channels: int) -> np.ndarray:
    if pixels.shape[-1] == 4:  # inks: cyan, magenta, yellow, and black
        rest = 255 - pixels.astype(np.int32)
        pixels = (rest[..., :3] * rest[..., 3:] // 255).astype(np.uint8)
        if channels == 1:
            weights = np.array([0.299, 0.587, 0.114])
            return np.rint(pixels @ weights).astype(np.uint8)[..., None]
    if channels == 3 and pixels.shape[-1] == 1:
        return np.repeat(pixels, 3, axis=-1)
    return pixels


def decoded_dims(channels: int) -> tuple[int | None, ...]:
    """The static shape of a decoded image."""
    return (None, None, channels or None)


@decode_and_crop_jpeg_op.shape
def _(contents, crop_window, *, channels):
    window = constant_value(crop_window)
    height, width = (None, None) if window is None else window[2:].tolist()
    return (height, width, channels or None)


@decode_and_crop_jpeg_op.kernel
def _(
    xp,
    contents,
    crop_window,
    *,
    channels,
    ratio,
    fancy_upscaling,
    try_recover_truncated,
    acceptable_fraction,
    dct_method,
):
    pixels = read_jpeg(
        one_string(contents),
        channels,
        ratio,
        fancy_upscaling,
        try_recover_truncated,
        acceptable_fraction,
        dct_method,
    )
    if crop_window.shape != (4,):
        refuse(f"crop_window must have four numbers, not the shape {list(crop_window.shape)}")
    top, left, height, width = crop_window.tolist()
    rows, columns = pixels.shape[:2]
    fits = top >= 0 and left >= 0 and height > 0 and width > 0
    if not fits or top + height > rows or left + width > columns:
        refuse(
            f"Invalid JPEG data or crop window: the window [y, x, height, width] = "
            f"{crop_window.tolist()} is not inside an image of {rows} x {columns}"
        )
    return np.ascontiguousarray(pixels[top : top + height, left : left + width])


@extract_jpeg_shape_op.shape
def _(contents):
    return (3,)


@extract_jpeg_shape_op.kernel
def _(xp, contents, *, output_type):
    with opened(one_string(contents), "JPEG") as image:
        width, height = image.size
        return np.array([height, width, len(image.getbands())], output_type.np_dtype)


# Encoding -------------------------------------------------------------------------------------


@encode_jpeg_op.shape
def _(image):
    return ()


@encode_jpeg_variable_quality_op.shape
def _(images, quality):
    return ()


def _bands(image: np.ndarray, kind: str) -> np.ndarray:
    """``image`` in the form that Pillow takes, grey or coloured as ``kind`` asks."""
    if image.ndim != 3:
        refuse(f"image must be 3-dimensional, not of shape {list(image.shape)}")
    channels = image.shape[-1]
    wanted = {"grayscale": (1,), "rgb": (3,), "": (1, 3)}[kind]
    if channels not in wanted:
        expected = " or ".join(map(str, wanted))
        refuse(f"image must have {expected} channels for format {kind!r}, not {channels}")
    if 0 in image.shape:
        refuse(f"image must have pixels, but its shape is {list(image.shape)}")
    return image[..., 0] if channels == 1 else image


def write_jpeg(
    image: np.ndarray, quality: int, kind: str = "", halved: bool = True, **how: Any
) -> bytes:
    """``image`` as a JPEG file, its colours of half the size; ``how`` is passed to Pillow."""
    from PIL import Image

    if not 0 <= quality <= 100:
        refuse(f"quality must be in [0,100], got {quality}")
    file = io.BytesIO()
    bands = _bands(image, kind)
    if bands.ndim == 3:
        how["subsampling"] = "4:2:0" if halved else "4:4:4"
    # Pillow reads 0 as its own default; the tables of 0 and of 1 are the same.
    Image.fromarray(bands).save(file, "JPEG", quality=max(quality, 1), **how)
    return file.getvalue()


_XMP = b"http://ns.adobe.com/xap/1.0/\0"


@encode_jpeg_op.kernel
def _(
    xp,
    image,
    *,
    format,  # noqa: A002 (TensorFlow's name)
    quality,
    progressive,
    optimize_size,
    chroma_downsampling,
    density_unit,
    x_density,
    y_density,
    xmp_metadata,
):
    written = write_jpeg(
        image,
        quality,
        encoded(format).decode(),
        chroma_downsampling,
        progressive=progressive,
        optimize=optimize_size,
        dpi=(x_density, y_density),
    )
    # The first segment after the two bytes that begin a file has the density.
    end = 4 + int.from_bytes(written[4:6], "big")
    unit = 1 if encoded(density_unit) == b"in" else 2
    density = struct.pack(">BHH", unit, x_density, y_density)
    head = written[:13] + density + written[18:end]
    return _text(head + _xmp_segment(encoded(xmp_metadata)) + written[end:])


def _xmp_segment(metadata: bytes) -> bytes:
    if not metadata:
        return b""
    content = _XMP + metadata
    if len(content) > 0xFFFF - 2:
        refuse(f"xmp_metadata of {len(metadata)} bytes does not fit into a JPEG segment")
    return b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content


def _text(content: bytes) -> np.ndarray:
    out = np.empty((), object)
    out[()] = content
    return out


@encode_jpeg_variable_quality_op.kernel
def _(xp, images, quality):
    return _text(write_jpeg(images, int(quality), dpi=(300, 300)))


# Functions ------------------------------------------------------------------------------------


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """A part of a JPEG file's image: ``crop_window`` is [y, x, height, width] in pixels.

    Example:
        >>> tf.image.decode_and_crop_jpeg(tf.read_file("cat.jpg"), [10, 20, 224, 224], channels=3)
    """
    return decode_and_crop_jpeg_op(
        contents,
        crop_window,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=float(acceptable_fraction),
        dct_method=dct_method,
        name=name,
    )


def extract_jpeg_shape(
    contents: Any, output_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """[height, width, channels] of a JPEG file, without decoding it."""
    return extract_jpeg_shape_op(contents, output_type=output_type, name=name)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether the bytes begin as those of a JPEG file do."""
    with name_scope(name, "is_jpeg") as scope:
        return equal(substr(contents, 0, 3), b"\xff\xd8\xff", name=scope)


def encode_jpeg(
    image: Any,
    format: str = "",  # noqa: A002 (TensorFlow's name)
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str | bytes = "",
    name: str | None = None,
) -> Tensor:
    """An image of bytes, ``[height, width, 1 or 3]``, as a JPEG file.

    Example:
        >>> tf.write_file("small.jpg", tf.image.encode_jpeg(image, quality=90))
    """
    return encode_jpeg_op(
        image,
        format=format,
        quality=quality,
        progressive=progressive,
        optimize_size=optimize_size,
        chroma_downsampling=chroma_downsampling,
        density_unit=density_unit,
        x_density=x_density,
        y_density=y_density,
        xmp_metadata=xmp_metadata,
        name=name,
    )


def adjust_jpeg_quality(image: Any, jpeg_quality: Any, name: str | None = None) -> Tensor:
    """``image`` as it is after being a JPEG file of ``jpeg_quality`` (0 to 100)."""
    from runnel.ops.image.decode_image import decode_jpeg

    with name_scope(name, "adjust_jpeg_quality", [image]):
        image = convert_to_tensor(image, name="image")
        kind = image.dtype.base_dtype
        channels = image.dims[-1] if image.dims else None
        small = convert_image_dtype(image, dtypes.uint8, saturate=True)
        quality = convert_to_tensor(jpeg_quality, dtypes.int32)
        file = encode_jpeg_variable_quality_op(small, quality)
        return convert_image_dtype(decode_jpeg(file, channels or 0), kind, saturate=True)


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """``image`` as it is after being a JPEG file of a quality that is drawn in each step."""
    for bound in (min_jpeg_quality, max_jpeg_quality):
        if not 0 <= bound <= 100:
            raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed)
    return adjust_jpeg_quality(image, quality)
