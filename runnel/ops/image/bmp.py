"""BMP: uncompressed pixels after a header."""

from __future__ import annotations

import struct

import numpy as np

from runnel.ops.image.image_files import refuse, require_channels, require_size

_HEADER = 32  # bytes, up to the compression method


def read_bmp(contents: bytes, channels: int) -> np.ndarray:
    """The pixels of a BMP file: 8 bits are grey, 24 colours, 32 colours and transparency."""
    require_channels(channels, (0, 1, 3, 4), "BMP")
    if len(contents) < _HEADER:
        refuse(f"Incomplete bmp content, requires at least {_HEADER} bytes, got {len(contents)}")
    start, _, width, height, _, bits = struct.unpack_from("<IIiiHH", contents, 10)
    have = bits // 8
    if have not in (1, 3, 4) or channels not in (0, have):
        refuse(f"channels attribute {channels} does not match bits per pixel from file {bits}")
    require_size(abs(height), width, have)
    row = -(-width * have // 4) * 4
    if start < _HEADER or start + row * (abs(height) - 1) + width * have > len(contents):
        refuse(
            f"Incomplete bmp content: {abs(height)} rows of {row} bytes from byte {start} on do "
            f"not fit into {len(contents)} bytes"
        )
    data = contents[start : start + row * abs(height)].ljust(row * abs(height), b"\0")
    rows = np.frombuffer(data, np.uint8).reshape(abs(height), row)
    pixels = rows[:, : width * have].reshape(abs(height), width, have)
    if height > 0:  # the lowest row comes first
        pixels = pixels[::-1]
    if have >= 3:  # blue comes first
        pixels = pixels[..., [2, 1, 0, 3][:have]]
    return np.ascontiguousarray(pixels)
