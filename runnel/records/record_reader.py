"""Reading the records of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from runnel.checkpoint.checksum import extending, masked
from runnel.gfile import open_binary
from runnel.graph import errors
from runnel.records.compression import Inflated, TFRecordOptions
from runnel.records.framing import FOOTER, HEADER

_CHUNK = 1 << 18


class RecordReader:
    """The records of a file, one after the other.

    The end of the file ends the iteration; where the file has grown since, it goes on. A record
    that is damaged, or cut off because its writer was killed, is a ``DataLossError`` with the file
    and the offset, after all the records before it; asking again reads the same place again.
    Offsets in a compressed file are those of what it holds.

    Example:
        >>> with RecordReader("train.tfrecord") as reader:
        ...     sizes = [len(record) for record in reader]
    """

    def __init__(self, path: str | os.PathLike[str], compression: Any = None) -> None:
        self._path = os.fspath(path)
        file = open_binary(self._path)
        kind = TFRecordOptions.get_compression_type_string(compression)
        self._file: Any = Inflated(file, kind) if kind else file
        self.offset = 0
        """Where the next record begins."""
        self._buffer = b""
        self._buffer_at = 0
        self._checksum = extending()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        begin = self.offset - self._buffer_at
        header = self._buffer[begin : begin + HEADER.size]
        if len(header) < HEADER.size:
            header = self._read(self.offset, HEADER.size)
            begin = self.offset - self._buffer_at
        if not header and self._unreadable is None:
            raise StopIteration
        if len(header) < HEADER.size:
            raise self._truncated()
        length, checksum = HEADER.unpack(header)
        if masked(self._checksum(0, header[:8])) != checksum:
            raise self._damaged("the checksum of its length does not match")
        begin += HEADER.size
        end = begin + length
        if end + FOOTER.size > len(self._buffer):
            body = self._read(self.offset + HEADER.size, length + FOOTER.size)
            if len(body) < length + FOOTER.size:
                raise self._truncated()
            begin = self.offset + HEADER.size - self._buffer_at
            end = begin + length
        data = self._buffer[begin:end]
        if masked(self._checksum(0, data)) != FOOTER.unpack_from(self._buffer, end)[0]:
            raise self._damaged("the checksum of its data does not match")
        self.offset += HEADER.size + length + FOOTER.size
        return data

    def _read(self, offset: int, count: int) -> bytes:
        """``count`` bytes of the file, or fewer at its end."""
        begin = offset - self._buffer_at
        if begin + count > len(self._buffer):
            try:
                self._extend(begin, count)
            except OSError as error:
                raise errors.UnknownError(None, None, f"{self._path}: {error}") from error
            begin = 0
        return self._buffer[begin : begin + count]

    def _extend(self, begin: int, count: int) -> None:
        """Keeps the buffer from ``begin`` on, and reads what is missing of ``count``."""
        kept = self._buffer[begin:]
        self._file.seek(self._buffer_at + begin + len(kept))
        self._buffer_at += begin
        # In pieces: a length may be anything that its checksum confirms.
        pieces, missing = [kept], max(count - len(kept), _CHUNK)
        while missing > 0 and (piece := self._file.read(min(missing, 1 << 24))):
            pieces.append(piece)
            missing -= len(piece)
        self._buffer = b"".join(pieces)

    def _again(self) -> None:
        """Has the next call read from the file what it reads."""
        self._buffer, self._buffer_at = b"", self.offset

    @property
    def _unreadable(self) -> str | None:
        """Why the file cannot be read further, though it does not end here."""
        return self._file.damage if isinstance(self._file, Inflated) else None

    def _truncated(self) -> errors.DataLossError:
        if self._unreadable is not None:
            return self._damaged(self._unreadable)
        self._again()
        return errors.DataLossError(
            None, None, f"{self._path}: truncated record at {self.offset}: the file ends within it"
        )

    def _damaged(self, how: str) -> errors.DataLossError:
        self._again()
        message = f"{self._path}: corrupted record at {self.offset}: {how}"
        return errors.DataLossError(None, None, message)

    def seek(self, offset: int) -> None:
        """Goes on with the record that begins at ``offset``."""
        self.offset = offset
        self._again()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file.

    Example:
        >>> for record in tf.python_io.tf_record_iterator("train.tfrecord"):
        ...     example = tf.train.Example.FromString(record)
    """
    with RecordReader(path, options) as reader:
        yield from reader
