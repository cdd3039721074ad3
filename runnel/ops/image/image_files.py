"""What the decoders share: which format bytes are in, opening them with Pillow, limits, errors.

Pillow decodes with libjpeg-turbo, libpng's zlib and its own GIF reader, in C and without holding
the interpreter's lock.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from runnel.graph.errors import InvalidArgumentError

LARGEST_IMAGE = 2**29
"""Bytes that a decoded image may take, as in TensorFlow: a small file may claim to be huge."""

_BEGINNINGS = ((b"\xff\xd8\xff", "JPEG"), (b"\x89PNG\r\n\x1a\n", "PNG"), (b"GIF8", "GIF"))


def refuse(message: str) -> NoReturn:
    """Raises the error for contents or arguments that cannot be."""
    raise InvalidArgumentError(None, None, message)


def one_string(contents: Any) -> bytes:
    """The bytes in the scalar ``contents``."""
    array = np.asarray(contents, object)
    if array.shape:
        refuse(f"contents must be a scalar string, not of shape {list(array.shape)}")
    return array.item()


def format_of(contents: bytes) -> str:
    """ "JPEG", "PNG", "GIF" or "BMP"; other bytes are refused."""
    for beginning, name in _BEGINNINGS:
        if contents.startswith(beginning):
            return name
    if contents.startswith(b"BM"):
        return "BMP"
    begins = "no bytes" if not contents else f"bytes that begin with {contents[:8]!r}"
    refuse(f"Unknown image format: {begins}. One of JPEG, PNG, GIF, BMP is required")


def require_channels(channels: int, allowed: tuple[int, ...], what: str) -> None:
    """Refuses a number of channels that ``what`` cannot have."""
    if channels not in allowed:
        refuse(f"channels must be one of {allowed} for {what}, not {channels}")


def require_size(height: int, width: int, bytes_each: int) -> None:
    """Refuses an image whose pixels would not fit into :data:`LARGEST_IMAGE`."""
    if height <= 0 or width <= 0:
        refuse(f"Invalid image size: {width} x {height}")
    if height * width * bytes_each >= LARGEST_IMAGE:
        refuse(
            f"Image too large: {width} x {height} pixels take {height * width * bytes_each} "
            f"bytes, more than {LARGEST_IMAGE}"
        )


@contextmanager
def opened(contents: bytes, name: str) -> Iterator[Any]:
    """The image in ``contents`` as Pillow sees it; damage is an InvalidArgumentError."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(contents), formats=(name,)) as image:
            yield image
    except InvalidArgumentError:
        raise
    except Image.DecompressionBombError as error:
        refuse(f"Image too large: {error}")
    except Exception as error:  # noqa: BLE001 (Pillow raises many kinds over damaged bytes)
        refuse(
            f"Invalid {name} data, size {len(contents)}: {error or type(error).__name__}. "
            "The file may be cut off or damaged"
        )


def pixels_of(image: Any) -> np.ndarray:
    """The samples of a Pillow image, ``(height, width, channels)``; decodes what was not yet."""
    array = np.asarray(image)
    return array if array.ndim == 3 else array[..., None]
