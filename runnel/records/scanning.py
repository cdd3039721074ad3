"""Finding the records in a piece of a record file."""

from __future__ import annotations

import ctypes

import numpy as np

from runnel.checkpoint.checksum import MASK_DELTA, extending
from runnel.native.input_library import input_library
from runnel.records.framing import FOOTER, HEADER

AT_ONCE = 1024
"""How many records are found together, at most."""
_MANY = 1 << 12
"""From how many bytes on a checksum is worth a call of native code."""
Found = tuple[list[bytes], list[int]]
"""Records, and where each ends with its checksum."""


def records_in(content: bytes, at: int) -> Found:
    """The records from ``at`` on that are whole and sound, up to ``AT_ONCE``.

    They end before one that is cut or damaged.
    """
    if len(content) - at < HEADER.size + FOOTER.size:
        return [], []
    library = input_library()
    return _scanned(content, at) if library is None else _native(library, content, at)


def _native(library: ctypes.CDLL, content: bytes, at: int) -> Found:
    most = min(AT_ONCE, (len(content) - at) // (HEADER.size + FOOTER.size))
    if most <= 0:
        return [], []
    spans = np.empty((most, 2), np.int64)
    count = library.runnel_scan_records(content, len(content), at, most, spans.ctypes.data)
    found = spans[:count].tolist()
    return [content[begin:end] for begin, end in found], [end + FOOTER.size for _, end in found]


def _scanned(content: bytes, at: int) -> Found:
    """The same, in Python."""
    records: list[bytes] = []
    ends: list[int] = []
    filled, checksum = len(content), extending()
    unpack, footer = HEADER.unpack_from, FOOTER.unpack_from
    while len(records) < AT_ONCE and at + 16 <= filled:
        length, stored = unpack(content, at)
        end = at + 12 + length
        if end + 4 > filled:
            break
        # masked() and its calls, written out: this is where the time of small records goes.
        crc = checksum(0, content[at : at + 8])
        if ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF != stored:
            break
        data = content[at + 12 : end]
        crc = checksum(0, data)
        if ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF != footer(content, end)[0]:
            break
        at = end + 4
        records.append(data)
        ends.append(at)
    return records, ends


def checksum_of(data: bytes) -> int:
    """The CRC-32C of ``data``; that of many is computed while others run."""
    library = input_library() if len(data) > _MANY else None
    if library is None:
        return extending()(0, data)
    return library.runnel_crc32c(data, len(data))
