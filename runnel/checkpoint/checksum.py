"""The checksums in TensorFlow's files: CRC-32C, *masked* where it is stored beside its data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, BinaryIO

import numpy as np

MASK_DELTA = 0xA282EAD8
_CHUNK = 1 << 20
"""How many bytes are checked and written at a time: they stay in the processor's cache."""


def byte_chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    """The bytes of a contiguous array, some at a time: views of it, nothing is copied."""
    view = array.reshape(-1).view(np.uint8)
    for start in range(0, len(view), _CHUNK):
        yield view[start : start + _CHUNK]


def read_checked(file: BinaryIO, array: np.ndarray, crc: int = 0) -> int | None:
    """Fills ``array`` from a file; the CRC-32C of its bytes, or None where the file ends.

    ``crc`` is that of what comes before.
    """
    for piece in byte_chunks(array):
        if file.readinto(piece.data) != len(piece):  # type: ignore[attr-defined]
            return None
        crc = extend(crc, piece)
    return crc


def extend(crc: int, data: bytes | np.ndarray) -> int:
    """The CRC-32C of what has ``crc``, followed by ``data``: bytes, or an array of them."""
    if isinstance(data, np.ndarray):
        data = data.view()
        data.flags.writeable = False  # what computes checksums takes no others
    return extending()(crc, data)


@cache
def extending() -> Any:
    """The function :func:`extend` itself, for who calls it often."""
    try:
        from google_crc32c import extend as quick
    except ImportError:  # correct, but some megabytes a second
        from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import crc_update

        return lambda crc, data: crc_update(crc, bytes(data))
    return quick


def masked(crc: int) -> int:
    """What is stored for ``crc``."""
    return ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF
