"""The checksums in TensorFlow's files: CRC-32C, *masked* where it is stored beside its data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

_MASK_DELTA = 0xA282EAD8
_CHUNK = 4 << 20
"""How many bytes are copied at a time."""


def chunks(data: Any) -> Iterator[bytes]:
    """The bytes of a buffer, a few megabytes at a time."""
    view = memoryview(data)
    for start in range(0, len(view), _CHUNK):
        yield bytes(view[start : start + _CHUNK])


def extend(crc: int, data: bytes) -> int:
    """The CRC-32C of what has ``crc``, followed by ``data``."""
    return extending()(crc, data)


@cache
def extending() -> Any:
    """The function :func:`extend` itself, for who calls it often."""
    try:
        from google_crc32c import extend as quick
    except ImportError:  # correct, but some megabytes a second
        from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import crc_update

        return lambda crc, data: crc_update(crc ^ 0xFFFFFFFF, data) ^ 0xFFFFFFFF
    return quick


def masked(crc: int) -> int:
    """What is stored for ``crc``."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
