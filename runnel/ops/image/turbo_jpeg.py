"""JPEG files decoded by simplejpeg, an interface to libjpeg-turbo, where it is installed.

It gives exactly TensorFlow's pixels: the fast transform and smooth upsampling are chosen apart from
each other, which Pillow cannot. It also writes them into the array itself, in half the time. A file
with a flaw is left to Pillow, which says what is wrong, unless it shall be recovered.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from runnel.ops.image.image_files import require_size

_BLOCK = 8
"""Pixels of a side from which on a smaller size stands for one scale alone."""


@functools.cache
def simplejpeg() -> Any:
    """The package, or None where it is not installed: asking for it again would take long."""
    try:
        import simplejpeg as package
    except ImportError:
        return None
    return package


def read_directly(
    contents: bytes,
    channels: int,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    accurate: bool = False,
    recover: bool = False,
) -> np.ndarray | None:
    """The pixels of a JPEG file; None where it is damaged or unusual, or the package is missing."""
    package = simplejpeg()
    if package is None:
        return None
    try:
        height, width, colours, _ = package.decode_jpeg_header(contents, strict=not recover)
    except ValueError:
        return None
    small = ratio > 1 and min(height, width) < _BLOCK
    if small or colours not in ("Gray", "YCbCr", "RGB"):
        return None
    kept = 1 if channels == 1 or (channels == 0 and colours == "Gray") else 3
    height, width = -(-height // ratio), -(-width // ratio)
    require_size(height, width, kept)
    try:
        return package.decode_jpeg(
            contents,
            "GRAY" if kept == 1 else "RGB",
            fastdct=not accurate,
            fastupsample=not fancy_upscaling,
            min_height=height,
            min_width=width,
            min_factor=ratio,
            strict=not recover,
        )
    except ValueError:
        return None
