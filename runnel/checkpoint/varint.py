"""Numbers of variable length: seven bits a byte, the lowest first."""

from __future__ import annotations

from runnel.graph.errors import DataLossError


def varint(number: int) -> bytes:
    """The bytes of a number."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A number of at most 64 bits at ``position``, and where what follows it begins."""
    number = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
    raise DataLossError(None, None, "a number is cut off")
