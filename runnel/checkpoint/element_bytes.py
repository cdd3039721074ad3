"""The elements of a tensor as the bytes that a checkpoint stores."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from runnel.checkpoint.checksum import byte_chunks, extend, masked
from runnel.checkpoint.varint import read_varint, varint
from runnel.graph import dtypes
from runnel.graph.array_size import MAX_BYTES
from runnel.graph.dtypes import DType
from runnel.graph.errors import DataLossError, InvalidArgumentError
from runnel.mapped_array import let_go

_MAX_DIMENSIONS = 32 if np.__version__.startswith("1.") else 64
_MANY = 0xFFFFFFFF
"""A string that is longer has its length in the checksum with 8 bytes."""


@dataclass(frozen=True, slots=True)
class StoredVariant:
    """A variant as a checkpoint has it: the name of what it is, and bytes."""

    type_name: str
    metadata: bytes


def stored_problem(dtype: DType, shape: tuple[int, ...]) -> str | None:
    """Why no checkpoint can have an array of that type and shape; None when one can."""
    if dtype.is_ref_dtype or dtype is dtypes.resource:
        return f"its type is {dtype.name}"
    size = prod([size for size in shape if size]) * max(dtype.size, 1)
    if any(size < 0 for size in shape) or len(shape) > _MAX_DIMENSIONS or size > MAX_BYTES:
        return f"its shape is {shape}"
    return None


def pieces(array: np.ndarray, dtype: DType) -> Iterator[Any]:
    """What is stored for ``array``, in order: bytes, and views of it."""
    if dtype is dtypes.string:
        yield from _strings(array)
    elif dtype is dtypes.variant:
        yield from _variants(array)[0]
    elif array.size:
        for chunk in byte_chunks(np.ascontiguousarray(array)):
            yield chunk
            let_go(chunk)


def _strings(array: np.ndarray) -> Iterator[bytes]:
    """The lengths, their checksum, and the bytes of all strings."""
    texts = [_as_bytes(text) for text in array.reshape(-1)]
    yield b"".join(varint(len(text)) for text in texts)
    yield struct.pack("<I", masked(_length_checksum(map(len, texts))))
    yield b"".join(texts)


def _variants(array: np.ndarray) -> tuple[list[bytes], int]:
    """For each variant its length, a message with it, and the checksum up to there; and the last.

    In the checksum a length has 8 bytes.
    """
    out: list[bytes] = []
    crc = 0
    for value in array.reshape(-1):
        if not isinstance(value, StoredVariant):
            raise InvalidArgumentError(
                None, None, f"A variant that holds a {type(value).__name__} cannot be saved."
            )
        name = value.type_name.encode()
        # VariantTensorDataProto: type_name = 1, metadata = 2.
        body = b"".join(
            (b"\x0a", varint(len(name)), name, b"\x12", varint(len(value.metadata)), value.metadata)
        )
        crc = extend(extend(crc, struct.pack("<Q", len(body))), body)
        check = struct.pack("<I", masked(crc))
        crc = extend(crc, check)
        out += [varint(len(body)), body, check]
    return out, crc


def parse_variants(data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """The array of variants in ``data``, without the tensors in them."""
    count = prod(shape)
    if count > len(data):
        raise DataLossError(None, None, "there are fewer variants than the shape says")
    found = np.empty(count, object)
    position = crc = 0
    for place in range(count):
        length, position = read_varint(data, position)
        body = data[position : position + length]
        check = data[position + length : position + length + 4]
        position += length + 4
        crc = extend(extend(crc, struct.pack("<Q", length)), body)
        if check != struct.pack("<I", masked(crc)):
            raise DataLossError(None, None, "the checksum of a variant is wrong")
        crc = extend(crc, check)
        found[place] = _parsed_variant(body)
    if position != len(data):
        raise DataLossError(None, None, "the variants are not as long as they should be")
    return found.reshape(shape)


def _parsed_variant(body: bytes) -> StoredVariant:
    parts = {1: b"", 2: b""}
    position = 0
    while position < len(body):
        key, position = read_varint(body, position)
        length, position = read_varint(body, position)
        if key & 7 != 2 or position + length > len(body):
            raise DataLossError(None, None, "a variant is not one")
        parts[key >> 3] = body[position : position + length]
        position += length
    return StoredVariant(parts[1].decode(errors="replace"), parts[2])


def variant_checksum(array: np.ndarray) -> int:
    """The checksum of an array of variants."""
    return _variants(array)[1]


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
