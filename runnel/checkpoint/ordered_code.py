"""Keys that sort as what they encode: how a slice of a tensor is named in a table."""

from __future__ import annotations

from runnel.checkpoint.tensor_slice import TensorSlice

_HEADERS = (
    *((0, 0), (0x80, 0), (0xC0, 0), (0xE0, 0), (0xF0, 0), (0xF8, 0), (0xFC, 0), (0xFE, 0)),
    *((0xFF, 0), (0xFF, 0x80), (0xFF, 0xC0)),
)
"""The first bits of a signed number, by its length in bytes."""


def slice_key(name: str, part: TensorSlice) -> bytes:
    """The key of the slice ``part`` of the tensor ``name``."""
    key = _unsigned(0) + _string(name.encode()) + _unsigned(len(part.extents))
    for start, length in part.extents:
        key += _signed(start) + _signed(-1 if length is None else length)
    return key


def _unsigned(number: int) -> bytes:
    size = (number.bit_length() + 7) // 8
    return bytes([size]) + number.to_bytes(size, "big")


def _string(text: bytes) -> bytes:
    escapes = {0x00: b"\x00\xff", 0xFF: b"\xff\x00"}
    return b"".join(escapes.get(byte, bytes([byte])) for byte in text) + b"\x00\x01"


def _signed(number: int) -> bytes:
    size = (~number if number < 0 else number).bit_length() // 7 + 1
    encoded = bytearray(number.to_bytes(10, "big", signed=True)[-size:])
    for position, bits in enumerate(_HEADERS[size][:size]):
        encoded[position] ^= bits
    return bytes(encoded)
