"""Elements out of files: lines, records, pieces of fixed length."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

from runnel.gfile import open_binary
from runnel.graph.errors import DataLossError, InvalidArgumentError
from runnel.pipelines.pipeline import END, Pipeline, PipelineRun, Traversal
from runnel.pipelines.sources import scalar
from runnel.records.compression import Inflated
from runnel.records.record_reader import RecordReader


class _Files(Pipeline):
    """Elements of several files, one file after the other."""

    def __init__(self, paths: list[str], compression: str) -> None:
        if compression not in ("", "ZLIB", "GZIP"):
            raise InvalidArgumentError(None, None, f"Unsupported compression_type: {compression}.")
        self.paths, self.compression = paths, compression

    def open(self, path: str) -> Any:
        """An iterator over the contents of elements of a file."""
        raise NotImplementedError

    def iterate(self, run: PipelineRun) -> Traversal:
        return _Reading(self)


class _Reading(Traversal):
    def __init__(self, files: _Files) -> None:
        self._files = files
        self._left = list(reversed(files.paths))
        self._reader: Any = None

    def next(self) -> Any:
        while True:
            if self._reader is None:
                if not self._left:
                    return END
                self._reader = self._files.open(self._left[-1])
                self._left.pop()
            try:
                content = next(self._reader, None)
            except DataLossError:
                # What follows damage in a file cannot be found: the next file is next.
                self._end_file()
                raise
            if content is not None:
                return [scalar(content)]
            self._end_file()

    def _end_file(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def close(self) -> None:
        self._left = []
        self._end_file()


class Records(_Files):
    """The records of record files."""

    def open(self, path: str) -> Any:
        return RecordReader(path, self.compression)


class Lines(_Files):
    """The lines of text files, without their ends."""

    def open(self, path: str) -> Any:
        return _lines(_opened(path, self.compression))


def _lines(file: Any) -> Any:
    try:
        for line in file:
            yield line.removesuffix(b"\n").removesuffix(b"\r")
    except (zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise DataLossError(None, None, f"The compressed file is damaged: {error}") from None
    finally:
        file.close()


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
        self._content, self._rest = content, b""

    def __iter__(self) -> Any:
        while piece := self._content.read(1 << 16):
            *lines, self._rest = (self._rest + piece).split(b"\n")
            yield from lines
        if self._content.damage is not None:
            raise zlib.error(self._content.damage)
        if self._rest:
            yield self._rest

    def read(self, count: int) -> bytes:
        return self._content.read(count)

    def close(self) -> None:
        self._content.close()


class Pieces(_Files):
    """Pieces of a fixed length, between a header and a footer that are left out."""

    def __init__(
        self, paths: list[str], header: int, length: int, footer: int, compression: str
    ) -> None:
        super().__init__(paths, compression)
        if length <= 0 or header < 0 or footer < 0:
            raise InvalidArgumentError(
                None,
                None,
                f"record_bytes ({length}) must be positive, header_bytes ({header}) and "
                f"footer_bytes ({footer}) must not be negative",
            )
        self._header, self._length, self._footer = header, length, footer

    def open(self, path: str) -> Any:
        return self._pieces(path)

    def _pieces(self, path: str) -> Any:
        file = _opened(path, self.compression)
        try:
            file.read(self._header)
            ahead = b""
            while True:
                ahead += file.read(self._length + self._footer - len(ahead))
                if len(ahead) < self._length + self._footer:
                    break
                yield ahead[: self._length]
                ahead = ahead[self._length :]
            if len(ahead) != self._footer:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"{path}: what is between its header and its footer is not a multiple of "
                    f"{self._length} bytes: {len(ahead) - self._footer} are left over",
                )
        finally:
            file.close()
