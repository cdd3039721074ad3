"""Reading the records of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from runnel.checkpoint.checksum import MASK_DELTA, extending, masked
from runnel.gfile import open_binary
from runnel.graph import errors
from runnel.records.compression import Inflated, TFRecordOptions
from runnel.records.framing import FOOTER, HEADER

_CHUNK = 1 << 18
"""How many bytes are read at least, and"""
_PIECE = 1 << 24
"""at most at a time."""


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
        self._reads_into = hasattr(self._file, "readinto")
        self.offset = 0
        """Where the next record begins."""
        self._buffer = bytearray()
        self._buffer_at, self._filled = 0, 0
        """Where the buffer stands in what the file holds, and how many of its bytes count."""
        self._checksum = extending()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        found = self.block(1)
        if not found:
            raise StopIteration
        return found[0]

    def block(self, most: int) -> list[bytes]:
        """The next records, at most so many; none at the end of the file.

        Records before one that is damaged are given first.
        """
        found = self._buffered(most)
        if found:
            return found
        # The next record is not whole in the buffer, or it is damaged.
        have = self._require(HEADER.size)
        if not have and self._unreadable is None:
            return []
        if have < HEADER.size:
            raise self._truncated()
        begin = self.offset - self._buffer_at
        length, checksum = HEADER.unpack_from(self._buffer, begin)
        if masked(self._checksum(0, bytes(self._buffer[begin : begin + 8]))) != checksum:
            raise self._damaged("the checksum of its length does not match")
        whole = HEADER.size + length + FOOTER.size
        if self._require(whole) < whole:
            raise self._truncated()
        found = self._buffered(most)
        if not found:
            raise self._damaged("the checksum of its data does not match")
        return found

    def _buffered(self, most: int) -> list[bytes]:
        """The records that are whole and sound in the buffer from here on, at most so many."""
        with memoryview(self._buffer) as view:
            return self._in_view(view, most)

    def _in_view(self, buffer: memoryview, most: int) -> list[bytes]:
        found: list[bytes] = []
        filled, checksum = self._filled, self._checksum
        unpack, footer = HEADER.unpack_from, FOOTER.unpack_from
        at = self.offset - self._buffer_at
        while len(found) < most and at + 16 <= filled:
            length, stored = unpack(buffer, at)
            end = at + 12 + length
            if end + 4 > filled:
                break
            # masked() and its calls, written out: this is where the time of small records goes.
            crc = checksum(0, bytes(buffer[at : at + 8]))
            if ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF != stored:
                break
            data = bytes(buffer[at + 12 : end])
            crc = checksum(0, data)
            if ((crc >> 15 | crc << 17) + MASK_DELTA) & 0xFFFFFFFF != footer(buffer, end)[0]:
                break
            found.append(data)
            at = end + 4
        self.offset = self._buffer_at + at
        return found

    def _require(self, count: int) -> int:
        """Has ``count`` bytes from here on in the buffer, or fewer at the file's end; how many."""
        have = self._buffer_at + self._filled - self.offset
        if have < count:
            try:
                have = self._fill(max(have, 0), count)
            except OSError as error:
                raise errors.UnknownError(None, None, f"{self._path}: {error}") from error
        return have

    def _fill(self, kept: int, count: int) -> int:
        """Reads on, behind the ``kept`` bytes from here on, until there are ``count``."""
        begin = self.offset - self._buffer_at
        old = self._buffer
        wanted = max(count, _CHUNK)
        if len(old) < min(wanted, _PIECE):
            self._buffer = bytearray(min(wanted, _PIECE))
        self._buffer[:kept] = old[begin : begin + kept]
        self._buffer_at, self._filled = self.offset, kept
        self._file.seek(self.offset + kept)
        while self._filled < count or self._filled < min(wanted, len(self._buffer)):
            if self._filled == len(self._buffer):
                # By and by: a length may be anything that its checksum confirms.
                self._buffer.extend(bytes(min(wanted - self._filled, _PIECE)))
            room = min(wanted, len(self._buffer)) - self._filled
            read = self._read_into(self._filled, room)
            if not read:
                break
            self._filled += read
        return self._filled

    def _read_into(self, at: int, room: int) -> int:
        if self._reads_into:
            with memoryview(self._buffer) as view:
                return self._file.readinto(view[at : at + room]) or 0
        piece = self._file.read(room)
        self._buffer[at : at + len(piece)] = piece
        return len(piece)

    def _again(self) -> None:
        """Has the next call read from the file what it reads."""
        self._buffer_at, self._filled = self.offset, 0

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
