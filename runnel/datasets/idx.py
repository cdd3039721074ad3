"""IDX files, the format of MNIST: a magic number, the sizes, and the elements, one byte each.

The magic number is two zero bytes, the element type and the number of dimensions; then comes each
dimension as a big-endian 32-bit integer, then the elements, last dimension fastest.
"""

import gzip
import os
import struct
import zlib
from math import prod
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

_GZIP_MAGIC = b"\x1f\x8b"
_UNSIGNED_BYTE = 0x08
_CONTENTS = {1: "labels", 3: "images"}
_CHUNK = 1 << 20


class IdxFormatError(ValueError):
    """An IDX file is damaged, incomplete, or not the one that was expected.

    The message names the file, what was found and what was expected. The usual cause is a download
    that was cut short or that saved a web page under the file's name: fetch the file again.
    """


def read_idx(path: str | os.PathLike[str], dimensions: int) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes with that many dimensions, gzipped or not.

    Whether it is gzipped is read off its first bytes, not off its name. Raises `IdxFormatError`
    where the magic number, the sizes or the length is wrong.
    """
    with open(path, "rb") as raw:
        start = raw.read(len(_GZIP_MAGIC))
        raw.seek(0)
        if start != _GZIP_MAGIC:
            return _read(raw, path, dimensions)
        with gzip.GzipFile(fileobj=raw) as stream:
            try:
                # A GzipFile reads as any binary file does, though its stub does not say so.
                return _read(cast(BinaryIO, stream), path, dimensions)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise IdxFormatError(
                    f"{os.fspath(path)} is not a complete gzip file ({error}); fetch it again"
                ) from error


def _read(stream: BinaryIO, path: str | os.PathLike[str], dimensions: int) -> NDArray[np.uint8]:
    name = os.fspath(path)
    header_size = 4 + 4 * dimensions
    expected_magic = (_UNSIGNED_BYTE << 8) | dimensions
    header = stream.read(header_size)
    if len(header) < 4:
        raise IdxFormatError(
            f"{name} ends after {len(header)} bytes, before the end of an IDX file's magic number; "
            "fetch it again"
        )
    (magic,) = struct.unpack_from(">I", header)
    if magic != expected_magic:
        raise IdxFormatError(
            f"{name} starts with the magic number 0x{magic:08x}, but an IDX file of "
            f"{_CONTENTS.get(dimensions, f'{dimensions}-dimensional bytes')} starts with "
            f"0x{expected_magic:08x}; {_explain(header, magic)}"
        )
    if len(header) < header_size:
        raise IdxFormatError(
            f"{name} ends after {len(header)} bytes, inside its header of {header_size} bytes; "
            "fetch it again"
        )
    shape = struct.unpack_from(f">{dimensions}I", header, 4)
    expected = prod(shape)
    # One byte more than expected, to notice a file that goes on.
    data = _read_at_most(stream, expected + 1)
    if len(data) != expected:
        found = f"only {len(data)}" if len(data) < expected else "more"
        raise IdxFormatError(
            f"{name} says that it holds {' x '.join(map(str, shape))} = {expected} bytes, "
            f"but {found} follow its header; fetch it again"
        )
    return np.frombuffer(data, np.uint8).reshape(shape)


def _explain(header: bytes, magic: int) -> str:
    element_type, dimensions = magic >> 8, magic & 0xFF
    if element_type == _UNSIGNED_BYTE and dimensions in _CONTENTS:
        return f"these are {_CONTENTS[dimensions]}: were two files exchanged?"
    if header.lstrip()[:1] == b"<":
        return "it looks like a web page saved under that name: fetch it again"
    if magic >> 16 == 0 and dimensions:
        return f"its elements have the type 0x{element_type:02x}, and only 0x08 (bytes) is read"
    return "is it an IDX file?"


def _read_at_most(stream: BinaryIO, limit: int) -> bytearray:
    # In pieces, so that a header with absurd sizes asks for no more memory than the file has.
    data = bytearray()
    while len(data) < limit:
        piece = stream.read(min(_CHUNK, limit - len(data)))
        if not piece:
            break
        data += piece
    return data
