"""TFRecord files: a record's length and its bytes, each with a checksum.

A record is its length (8 bytes, little-endian), the masked CRC-32C of those 8 bytes, the data, and
the masked CRC-32C of the data.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from runnel.checkpoint.checksum import extend, masked
from runnel.graph import errors

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")


def framed(data: bytes) -> bytes:
    """``data`` as a record of a file."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        (
            length,
            _FOOTER.pack(masked(extend(0, length))),
            data,
            _FOOTER.pack(masked(extend(0, data))),
        )
    )


class RecordReader:
    """The records of a file, one after the other.

    The end of the file ends the iteration; where the file has grown since, it goes on. A record
    that is damaged, or cut off because its writer was killed, is a ``DataLossError`` with the file
    and the offset, after all the records before it; asking again reads the same place again.

    Example:
        >>> with RecordReader("train.tfrecord") as reader:
        ...     sizes = [len(record) for record in reader]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        try:
            self._file = open(self._path, "rb")  # noqa: SIM115 (closed by ``close``)
        except FileNotFoundError as error:
            raise errors.NotFoundError(None, None, f"{self._path}: no such file") from error
        except OSError as error:
            raise errors.UnknownError(None, None, f"{self._path}: {error}") from error
        self.offset = 0
        """Where the next record begins."""

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        header = self._read(self.offset, _HEADER.size)
        if not header:
            raise StopIteration
        if len(header) < _HEADER.size:
            raise self._truncated()
        length, checksum = _HEADER.unpack(header)
        if masked(extend(0, header[:8])) != checksum:
            raise self._damaged("the checksum of its length does not match")
        # Before memory is asked for: the length may be anything that its checksum confirms.
        size = os.fstat(self._file.fileno()).st_size
        if length > size - self.offset - _HEADER.size - _FOOTER.size:
            raise self._truncated()
        body = self._read(self.offset + _HEADER.size, length + _FOOTER.size)
        if len(body) < length + _FOOTER.size:  # shortened meanwhile
            raise self._truncated()
        data = body[:length]
        if masked(extend(0, data)) != _FOOTER.unpack(body[length:])[0]:
            raise self._damaged("the checksum of its data does not match")
        self.offset += _HEADER.size + length + _FOOTER.size
        return data

    def _read(self, offset: int, count: int) -> bytes:
        try:
            self._file.seek(offset)
            return self._file.read(count)
        except OSError as error:
            raise errors.UnknownError(None, None, f"{self._path}: {error}") from error

    def _truncated(self) -> errors.DataLossError:
        return errors.DataLossError(
            None, None, f"{self._path}: truncated record at {self.offset}: the file ends within it"
        )

    def _damaged(self, how: str) -> errors.DataLossError:
        message = f"{self._path}: corrupted record at {self.offset}: {how}"
        return errors.DataLossError(None, None, message)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
