"""Elements out of files: lines, records, pieces of fixed length."""

from __future__ import annotations

import gzip
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from runnel.gfile import open_binary
from runnel.graph.errors import DataLossError, InvalidArgumentError
from runnel.pipelines.pipeline import END, Element, Pipeline, PipelineRun, Traversal
from runnel.pipelines.sources import scalar
from runnel.records.compression import Inflated
from runnel.records.record_reader import RecordReader


class FileElements(Protocol):
    """The contents of the elements of one file, one after the other."""

    @property
    def offset(self) -> int:
        """Where the next one begins, in what the file holds."""

    def seek(self, offset: int) -> None:
        """Goes on at an offset that it had."""

    def __iter__(self) -> Iterator[bytes]: ...

    def __next__(self) -> bytes: ...

    def close(self) -> None: ...


class _Files(Pipeline):
    """Elements of several files, one file after the other."""

    has_blocks = False
    """Whether the elements of a file come in blocks."""

    def __init__(self, paths: list[str], compression: str) -> None:
        if compression not in ("", "ZLIB", "GZIP"):
            raise InvalidArgumentError(None, None, f"Unsupported compression_type: {compression}.")
        self.paths, self.compression = paths, compression

    def open(self, path: str) -> FileElements:
        """The elements of a file."""
        raise NotImplementedError

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Reading(self)


class _Reading(Traversal):
    def __init__(self, files: _Files) -> None:
        self._files = files
        self._begun = 0
        self._reader: FileElements | None = None

    def next(self) -> Any:
        while True:
            if not self._opened():
                return END
            assert self._reader is not None
            try:
                content = next(self._reader, None)
            except (DataLossError, InvalidArgumentError):
                # What follows damage in a file cannot be found: the next file is next.
                self._end_file()
                raise
            if content is not None:
                return [scalar(content)]
            self._end_file()

    def _opened(self) -> bool:
        """Has a file open, if there is one left."""
        if self._reader is None:
            if self._begun == len(self._files.paths):
                return False
            self._reader = self._files.open(self._files.paths[self._begun])
            self._begun += 1
        return True

    @property
    def has_blocks(self) -> bool:  # type: ignore[override]
        return self._files.has_blocks

    def block(self, most: int) -> Element | None:
        while True:
            if not self._opened():
                return None
            assert isinstance(self._reader, RecordReader)
            try:
                contents = self._reader.block(most)
            except DataLossError:
                self._end_file()
                raise
            if contents:
                out = np.empty(len(contents), object)
                out[:] = contents
                return [out]
            self._end_file()

    def _end_file(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def close(self) -> None:
        self._begun = len(self._files.paths)
        self._end_file()

    def state(self) -> Any:
        return [self._begun, None if self._reader is None else self._reader.offset]

    def restore(self, state: Any) -> None:
        self._begun, offset = state
        if self._begun > len(self._files.paths):
            raise InvalidArgumentError(
                None,
                None,
                f"The iterator was saved in file {self._begun} of its dataset, which now has only "
                f"{len(self._files.paths)}.",
            )
        if offset is not None:
            self._reader = self._files.open(self._files.paths[self._begun - 1])
            self._reader.seek(offset)


class Records(_Files):
    """The records of record files."""

    has_blocks = True

    def open(self, path: str) -> FileElements:
        return RecordReader(path, self.compression)


class Lines(_Files):
    """The lines of text files, without their ends."""

    def open(self, path: str) -> FileElements:
        return _LineReader(_opened(path, self.compression), path)


_DAMAGED = (zlib.error, EOFError, gzip.BadGzipFile)


def _damage(path: str, error: Exception) -> DataLossError:
    return DataLossError(None, None, f"{path}: the compressed file is damaged: {error}")


class _LineReader:
    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path
        self.offset = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            line = self._file.readline()
        except _DAMAGED as error:
            raise _damage(self._path, error) from None
        if not line:
            raise StopIteration
        self.offset += len(line)
        return line.removesuffix(b"\n").removesuffix(b"\r")

    def seek(self, offset: int) -> None:
        self._file.seek(offset)
        self.offset = offset

    def close(self) -> None:
        self._file.close()


class CsvLines(_Files):
    """The records of files of comma-separated values: lines, which go on within quotes."""

    def __init__(self, paths: list[str], compression: str, header: bool, quotes: bool) -> None:
        super().__init__(paths, compression)
        self._how = (header, quotes)

    def open(self, path: str) -> FileElements:
        return _CsvReader(_opened(path, self.compression), path, *self._how)


class _CsvReader(_LineReader):
    def __init__(self, file: Any, path: str, header: bool, quotes: bool) -> None:
        super().__init__(file, path)
        self._header, self._quotes = header, quotes

    def __next__(self) -> bytes:
        if self._header:
            self._header = False
            self._record()
        while not (record := self._record()):
            pass  # empty lines are not records
        return record

    def _record(self) -> bytes:
        record = super().__next__()
        while self._quotes and record.count(b'"') % 2:
            record += b"\n" + super().__next__()
        return record

    def seek(self, offset: int) -> None:
        super().seek(offset)
        self._header = self._header and not offset


def _opened(path: str, compression: str) -> Any:
    file = open_binary(path)
    if not compression:
        return file
    if compression == "GZIP":
        return gzip.GzipFile(fileobj=file)
    return _InflatedLines(Inflated(file, compression))


class _InflatedLines:
    """The lines of a file that is compressed without gzip's header."""

    def __init__(self, content: Inflated) -> None:
        self._content = content
        self._begin()

    def _begin(self) -> None:
        self._lines: deque[bytes] = deque()
        self._rest = b""

    def readline(self) -> bytes:
        while not self._lines:
            piece = self._content.read(1 << 16)
            if not piece:
                if self._content.damage is not None:
                    raise zlib.error(self._content.damage)
                last, self._rest = self._rest, b""
                return last
            *whole, self._rest = (self._rest + piece).split(b"\n")
            self._lines.extend(line + b"\n" for line in whole)
        return self._lines.popleft()

    def read(self, count: int) -> bytes:
        return self._content.read(count)

    def seek(self, offset: int) -> None:
        self._content.seek(offset)
        self._begin()

    def close(self) -> None:
        self._content.close()


class Pieces(_Files):
    """Pieces of a fixed length, between a header and a footer that are left out.

    Each begins ``hop`` bytes after the one before, and a rest of the file that is too short for
    one is left out, too. Without ``hop`` they follow each other, and a rest is an error.
    """

    def __init__(
        self,
        paths: list[str],
        header: int,
        length: int,
        footer: int,
        compression: str,
        hop: int | None = None,
    ) -> None:
        super().__init__(paths, compression)
        if length <= 0 or header < 0 or footer < 0:
            raise InvalidArgumentError(
                None,
                None,
                f"record_bytes ({length}) must be positive, header_bytes ({header}) and "
                f"footer_bytes ({footer}) must not be negative",
            )
        self._sizes = (header, length, footer, hop)

    def open(self, path: str) -> FileElements:
        return _PieceReader(_opened(path, self.compression), path, *self._sizes)


class _PieceReader:
    def __init__(
        self, file: Any, path: str, header: int, length: int, footer: int, hop: int | None
    ) -> None:
        self._file, self._path = file, path
        self._length, self._footer = length, footer
        self._is_exact, self._hop = hop is None, hop or length
        self._ahead = b""
        self._header = self.offset = header

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        wanted = self._length + self._footer
        try:
            self._file.read(self._header)
            self._ahead += self._file.read(wanted - len(self._ahead))
        except _DAMAGED as error:
            raise _damage(self._path, error) from None
        self._header = 0
        if len(self._ahead) == wanted:
            piece, self._ahead = self._ahead[: self._length], self._ahead[self._hop :]
            self._header = max(self._hop - wanted, 0)  # a gap before the next
            self.offset += self._hop
            return piece
        if len(self._ahead) == self._footer or not self._is_exact:
            raise StopIteration
        raise InvalidArgumentError(
            None,
            None,
            f"{self._path}: what is between its header and its footer is not a multiple of "
            f"{self._length} bytes: {len(self._ahead) - self._footer} are left over",
        )

    def seek(self, offset: int) -> None:
        self._file.seek(offset)
        self.offset, self._header, self._ahead = offset, 0, b""

    def close(self) -> None:
        self._file.close()
