"""PNG files with 16 bits for each sample, which Pillow reads and writes for one channel only.

The format is RFC 2083's. Each row is stored as differences to its neighbours, by one of five
filters; two of them depend on the pixel to the left, so rows cannot be undone at once. The pixels
of an anti-diagonal do not depend on each other: going from one to the next, all rows advance
together.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from runnel.ops.image.image_files import refuse, require_size

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
_KINDS = {channels: kind for kind, channels in _CHANNELS.items()}
# Adam7: where the pixels of each pass begin, and how far they are apart, in rows and columns.
_PASSES = (
    (0, 0, 8, 8),
    (0, 4, 8, 8),
    (4, 0, 8, 4),
    (0, 2, 4, 4),
    (2, 0, 4, 2),
    (0, 1, 2, 2),
    (1, 0, 2, 1),
)


def is_deep(contents: bytes) -> bool:
    """True for a PNG file with 16 bits for each sample."""
    return len(contents) > 24 and contents[24] == 16


def read_deep(contents: bytes) -> tuple[np.ndarray, tuple[int, ...] | None]:
    """The samples of a 16-bit file, uint16, and the colour that it says is transparent."""
    header, data, transparent = _chunks(contents)
    width, height, _, kind, compression, filtering, interlaced = struct.unpack(">IIBBBBB", header)
    if kind not in _CHANNELS or compression or filtering or interlaced > 1:
        refuse(f"Invalid PNG header: colour type {kind}, interlace method {interlaced}")
    channels = _CHANNELS[kind]
    require_size(height, width, 2 * channels)
    parts = _PASSES if interlaced else ((0, 0, 1, 1),)
    sizes = [(-(-(height - y) // dy), -(-(width - x) // dx)) for y, x, dy, dx in parts]
    needed = sum(h * (1 + 2 * channels * w) for h, w in sizes if h > 0 and w > 0)
    try:
        flat = zlib.decompressobj().decompress(data, needed)
    except zlib.error as error:
        refuse(f"Invalid PNG data: {error}")
    if len(flat) < needed:
        refuse(f"Invalid PNG data: {len(flat)} bytes of pixels where {needed} are needed")
    out = np.empty((height, width, channels), np.uint16)
    start = 0
    for (y, x, dy, dx), (h, w) in zip(parts, sizes, strict=True):
        if h <= 0 or w <= 0:
            continue
        stop = start + h * (1 + 2 * channels * w)
        rows = np.frombuffer(flat, np.uint8, stop - start, start).reshape(h, -1)
        samples = unfiltered(rows[:, 0], rows[:, 1:].reshape(h, w, 2 * channels))
        out[y::dy, x::dx] = samples.reshape(h, -1).view(">u2").reshape(h, w, channels)
        start = stop
    marked = None
    if transparent is not None and len(transparent) == 2 * channels and kind in (0, 2):
        marked = struct.unpack(f">{channels}H", transparent)
    return out, marked


def _chunks(contents: bytes) -> tuple[bytes, bytes, bytes | None]:
    """The header, the compressed pixels and the transparent colour."""
    header, transparent, data = b"", None, []
    place = len(_SIGNATURE)
    while place + 12 <= len(contents):
        (size,) = struct.unpack_from(">I", contents, place)
        kind = contents[place + 4 : place + 8]
        body = contents[place + 8 : place + 8 + size]
        if len(body) < size:
            break
        (checksum,) = struct.unpack_from(">I", contents[place + 8 + size :].ljust(4, b"\0")[:4])
        if zlib.crc32(kind + body) != checksum:
            refuse(f"Invalid PNG data: the checksum of chunk {kind!r} does not match")
        if kind == b"IHDR":
            header = body
        elif kind == b"tRNS":
            transparent = body
        elif kind == b"IDAT":
            data.append(body)
        elif kind == b"IEND":
            break
        place += 12 + size
    if len(header) != 13 or not data:
        refuse("Invalid PNG data: the header or the pixels are missing")
    return header, b"".join(data), transparent


def unfiltered(filters: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The bytes of rows ``(height, width, bytes of a pixel)`` whose filters are undone."""
    if filters.max(initial=0) > 4:
        refuse(f"Invalid PNG data: there is no filter {filters.max()}")
    height, width, size = rows.shape
    # A row above and a column to the left, of zeros; skewed, an anti-diagonal is a column.
    done = np.zeros((height + 1, width + 1, size), np.int32)
    kinds = filters.astype(np.int32)
    for diagonal in range(height + width - 1):
        low, high = max(0, diagonal - width + 1), min(height, diagonal + 1)
        r = np.arange(low, high)
        c = diagonal - r
        left, above, corner = done[r + 1, c], done[r, c + 1], done[r, c]
        kind = kinds[low:high, None]
        guess = np.where(kind == 1, left, 0)
        guess = np.where(kind == 2, above, guess)
        guess = np.where(kind == 3, (left + above) >> 1, guess)
        if (kind == 4).any():
            guess = np.where(kind == 4, _nearest(left, above, corner), guess)
        done[r + 1, c + 1] = (rows[r, c] + guess) & 0xFF
    return np.ascontiguousarray(done[1:, 1:], np.uint8)


def _nearest(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """Paeth's predictor: whichever of the three is nearest to left + above - corner."""
    estimate = left + above - corner
    to_left, to_above = np.abs(estimate - left), np.abs(estimate - above)
    to_corner = np.abs(estimate - corner)
    other = np.where(to_above <= to_corner, above, corner)
    return np.where((to_left <= to_above) & (to_left <= to_corner), left, other)


def write_deep(image: np.ndarray, compression: int) -> bytes:
    """``image``, uint16 samples of one to four channels, as a PNG file."""
    height, width, channels = image.shape
    above = np.zeros_like(image[:1])
    samples = image.astype(">u2").reshape(height, -1).view(np.uint8).reshape(height, -1)
    previous = np.concatenate([above.view(np.uint8).reshape(1, -1), samples[:-1]])
    rows = np.empty((height, samples.shape[1] + 1), np.uint8)
    rows[:, 0] = 2  # each row as the difference to the one above
    rows[:, 1:] = samples - previous
    header = struct.pack(">IIBBBBB", width, height, 16, _KINDS[channels], 0, 0, 0)
    data = zlib.compress(rows.tobytes(), compression)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)
