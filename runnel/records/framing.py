"""How a record stands in a file: its length and its bytes, each with a checksum.

A record is its length (8 bytes, little-endian), the masked CRC-32C of those 8 bytes, the data, and
the masked CRC-32C of the data.
"""

from __future__ import annotations

import struct

from runnel.checkpoint.checksum import extend, masked

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")


def framed(data: bytes) -> bytes:
    """``data`` as a record of a file."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        (
            length,
            FOOTER.pack(masked(extend(0, length))),
            data,
            FOOTER.pack(masked(extend(0, data))),
        )
    )
