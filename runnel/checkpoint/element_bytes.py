"""The elements of a tensor as the bytes that a checkpoint stores."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from runnel.checkpoint.checksum import byte_chunks, extend, masked
from runnel.checkpoint.varint import read_varint, varint
from runnel.graph import dtypes
from runnel.graph.array_size import MAX_BYTES
from runnel.graph.dtypes import DType
from runnel.graph.errors import DataLossError

_MAX_DIMENSIONS = 32 if np.__version__.startswith("1.") else 64
_MANY = 0xFFFFFFFF
"""A string that is longer has its length in the checksum with 8 bytes."""


def stored_problem(dtype: DType, shape: tuple[int, ...]) -> str | None:
    """Why no checkpoint can have an array of that type and shape; None when one can."""
    if dtype.is_ref_dtype or dtype in (dtypes.resource, dtypes.variant):
        return f"its type is {dtype.name}"
    size = prod([size for size in shape if size]) * max(dtype.size, 1)
    if any(size < 0 for size in shape) or len(shape) > _MAX_DIMENSIONS or size > MAX_BYTES:
        return f"its shape is {shape}"
    return None


def pieces(array: np.ndarray, dtype: DType) -> Iterator[Any]:
    """What is stored for ``array``, in order: bytes, and views of it."""
    if dtype is dtypes.string:
        yield from _strings(array)
    elif array.size:
        yield from byte_chunks(np.ascontiguousarray(array))


def _strings(array: np.ndarray) -> Iterator[bytes]:
    """The lengths, their checksum, and the bytes of all strings."""
    texts = [_as_bytes(text) for text in array.reshape(-1)]
    yield b"".join(varint(len(text)) for text in texts)
    yield struct.pack("<I", masked(_length_checksum(map(len, texts))))
    yield b"".join(texts)


def _as_bytes(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _length_checksum(lengths: Any) -> int:
    packed = b"".join(struct.pack("<I" if n <= _MANY else "<Q", n) for n in lengths)
    return extend(0, packed)


def string_checksum(array: np.ndarray) -> int:
    """The checksum of an array of strings: of lengths as fixed numbers, not as they are stored."""
    texts = [_as_bytes(text) for text in array.reshape(-1)]
    crc = _length_checksum(map(len, texts))
    crc = extend(crc, struct.pack("<I", masked(crc)))
    return extend(crc, b"".join(texts))


def parse_strings(data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """The array of strings in ``data``; an error where it is not one."""
    count = prod(shape)
    if count > len(data):
        raise DataLossError(None, None, "there are fewer strings than the shape says")
    position, lengths = 0, []
    for _ in range(count):
        length, position = read_varint(data, position)
        lengths.append(length)
    stored = data[position : position + 4]
    position += 4
    if stored != struct.pack("<I", masked(_length_checksum(lengths))):
        raise DataLossError(None, None, "the checksum of the strings' lengths is wrong")
    if position + sum(lengths) != len(data):
        raise DataLossError(None, None, "the strings are not as long as they should be")
    found = np.empty(count, object)
    for index, length in enumerate(lengths):
        found[index] = data[position : position + length]
        position += length
    return found.reshape(shape)
