"""Reading the records of a file."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from typing import Any

from runnel.checkpoint.checksum import masked
from runnel.gfile import open_binary
from runnel.graph import errors
from runnel.records.compression import Inflated, TFRecordOptions
from runnel.records.framing import FOOTER, HEADER
from runnel.records.scanning import checksum_of, records_in

logger = logging.getLogger("runnel")

_CHUNK = 1 << 18
"""How many bytes are read at least, and"""
_PIECE = 1 << 24
"""at most at a time."""
_LARGE = 1 << 16
"""From how many bytes on a record is read by itself, to where it stays."""


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
        if kind:
            self._file: Any = Inflated(file, kind)
        else:
            # Large pieces need no further buffer, which would hold what the file once had.
            self._file = file.detach() if isinstance(file, io.BufferedReader) else file
        self._position: int | None = 0
        """Where the file stands; None where that is not known."""
        self.offset = 0
        """Where the next record begins."""
        self._again()

    def _again(self) -> None:
        """Has the next call read from the file what it reads."""
        self._content, self._content_at = b"", self.offset
        """A piece of what the file holds, and where it stands there."""
        self._records: list[bytes] = []
        self._ends: list[int] = []
        """The records that were found in the piece, and where they end."""
        self._given = 0
        """How many of them have been given."""

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        given = self._given
        if given == len(self._records):
            found = self.block(1)
            if not found:
                raise StopIteration
            return found[0]
        self._given = given + 1
        self.offset = self._content_at + self._ends[given]
        return self._records[given]

    def block(self, most: int) -> list[bytes]:
        """The next records, at most so many; none at the end of the file.

        Records before one that is damaged are given first.
        """
        if self._given < len(self._records) or self._find_more():
            return self._taken(most)
        # The next record is not whole in the piece, or it is damaged.
        have = self._require(HEADER.size)
        if not have and self._unreadable is None:
            return []
        if have < HEADER.size:
            raise self._truncated()
        begin = self.offset - self._content_at
        length, checksum = HEADER.unpack_from(self._content, begin)
        if masked(checksum_of(self._content[begin : begin + 8])) != checksum:
            raise self._damaged("the checksum of its length does not match")
        whole = HEADER.size + length + FOOTER.size
        if length >= _LARGE and have < whole:
            return [self._large(begin + HEADER.size, length)]
        if self._require(whole) < whole:
            raise self._truncated()
        if not self._find_more():
            raise self._damaged("the checksum of its data does not match")
        return self._taken(most)

    def _taken(self, most: int) -> list[bytes]:
        """The next of the records that were found, at most so many."""
        found = self._records[self._given : self._given + most]
        if found:
            self._given += len(found)
            self.offset = self._content_at + self._ends[self._given - 1]
        return found

    def _find_more(self) -> bool:
        """Finds records in the piece, from here on; whether there are any."""
        begin = self.offset - self._content_at
        self._records, self._ends = records_in(self._content, begin)
        self._given = 0
        return bool(self._records)

    def _require(self, count: int) -> int:
        """Has ``count`` bytes from here on in the piece, or fewer at the file's end; how many."""
        have = len(self._content) - (self.offset - self._content_at)
        if have < count:
            kept = self._content[self.offset - self._content_at :]
            read = self._read(self.offset + have, max(count, _CHUNK) - have)
            self._content, self._content_at = kept + read if kept else read, self.offset
            have = len(self._content)
        return have

    def _large(self, begin: int, length: int) -> bytes:
        """The next record, of which the data begin at ``begin`` in the piece but are not whole."""
        data, end = self._content[begin : begin + length], self.offset + HEADER.size + length
        read = self._read(end - length + len(data), length - len(data))
        data = data + read if data else read
        # What follows is the header of the next record: that one may be large, too.
        behind = self._read(end, FOOTER.size + HEADER.size) if len(data) == length else b""
        if len(behind) < FOOTER.size:
            raise self._truncated()
        if masked(checksum_of(data)) != FOOTER.unpack_from(behind)[0]:
            raise self._damaged("the checksum of its data does not match")
        self.offset = end + FOOTER.size
        self._again()
        self._content = behind[FOOTER.size :]
        return data

    def _read(self, at: int, count: int) -> bytes:
        """Bytes of what the file holds, from ``at`` on: ``count``, or fewer at its end."""
        pieces: list[bytes] = []
        position, self._position = self._position, None
        try:
            if position != at:
                self._file.seek(at)
            # By and by: a length may be anything that its checksum confirms.
            while count and (piece := self._file.read(min(count, _PIECE))):
                pieces.append(piece)
                at += len(piece)
                count -= len(piece)
        except OSError as error:
            raise errors.UnknownError(None, None, f"{self._path}: {error}") from error
        self._position = at
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

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

    def skip_damaged(self) -> bool:
        """Goes behind the damaged record at ``offset``; False when no record follows.

        Where its length is damaged, too, that is the next place at which a record could begin.
        """
        if self._require(HEADER.size) < HEADER.size:
            return False
        if self._begins_at(0):
            begin = self.offset - self._content_at
            end = self.offset + HEADER.size + FOOTER.size
            end += HEADER.unpack_from(self._content, begin)[0]
            self.seek(end)
            return len(self._read(end, 1)) == 1
        place = 1
        while self._require(place + HEADER.size) >= place + HEADER.size:
            if self._begins_at(place):
                self.seek(self.offset + place)
                return True
            place += 1
            if place == _CHUNK:  # what has been looked at need not be kept
                self.offset, place = self.offset + place, 0
        return False

    def _begins_at(self, place: int) -> bool:
        """Whether the piece has a length with its checksum, so many bytes from here."""
        begin = self.offset - self._content_at + place
        checksum = HEADER.unpack_from(self._content, begin)[1]
        return masked(checksum_of(self._content[begin : begin + 8])) == checksum

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class RandomRecordReader:
    """The records of a file by the offsets at which they begin.

    Example:
        >>> reader = tf.python_io.tf_record_random_reader("train.tfrecord")
        >>> record, next_offset = reader.read(0)
    """

    def __init__(self, path: str | os.PathLike[str], options: Any = None) -> None:
        self._reader = RecordReader(path, options)

    def read(self, offset: int) -> tuple[bytes, int]:
        """The record that begins at ``offset``, and where the next one begins.

        An ``IndexError`` at the end of the file, a ``DataLossError`` where no whole record begins.
        """
        reader = self._reader
        if reader.offset != offset:
            reader.seek(offset)
        record = next(reader, None)
        if record is None:
            raise IndexError(f"Out of range at reading offset {offset}")
        return record, reader.offset

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()

    def __enter__(self) -> RandomRecordReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


tf_record_random_reader = RandomRecordReader


def tf_record_iterator(
    path: Any, options: Any = None, skip_damaged: bool = False
) -> Iterator[bytes]:
    """The records of a file.

    A damaged record is an error; with ``skip_damaged`` it is left out, and a warning names its
    place.

    Example:
        >>> for record in tf.python_io.tf_record_iterator("train.tfrecord"):
        ...     example = tf.train.Example.FromString(record)
    """
    with RecordReader(path, options) as reader:
        while True:
            try:
                yield from reader
                return
            except errors.DataLossError as error:
                if not skip_damaged:
                    raise
                logger.warning("A record is left out: %s", error.message)
            if not reader.skip_damaged():
                return
