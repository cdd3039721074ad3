"""Sorted tables of keys and values in one file: the format of LevelDB, which TensorFlow uses.

Blocks of entries, each with a checksum; keys share prefixes with the entry before, but for every
sixteenth. At the end an index of the blocks and a footer that says where it is. What is read is
checked before it is used: a damaged file gives a :class:`DataLossError`.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

from runnel.checkpoint.checksum import extend, masked
from runnel.checkpoint.varint import read_varint, varint
from runnel.graph.errors import DataLossError, UnimplementedError

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5
_BLOCK = 256 << 10
_RESTART = 16


class _BlockWriter:
    def __init__(self, restart: int) -> None:
        self._restart = restart
        self._data = bytearray()
        self._restarts = [0]
        self._count = 0
        self._last = b""

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count == self._restart:
            self._restarts.append(len(self._data))
            self._count = 0
        else:
            most = min(len(key), len(self._last))
            while shared < most and key[shared] == self._last[shared]:
                shared += 1
        self._data += varint(shared) + varint(len(key) - shared) + varint(len(value))
        self._data += key[shared:] + value
        self._count += 1
        self._last = key

    def __len__(self) -> int:
        return len(self._data)

    def finish(self) -> bytes:
        restarts = [*self._restarts, len(self._restarts)]
        return bytes(self._data) + struct.pack(f"<{len(restarts)}I", *restarts)


class TableWriter:
    """Writes a table; keys are added in order."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self._block = _BlockWriter(_RESTART)
        self._index = _BlockWriter(1)
        self._last: bytes | None = None

    def add(self, key: bytes, value: bytes) -> None:
        """Adds an entry, whose key is greater than that before."""
        if self._last is not None and key <= self._last:
            raise ValueError(f"the key {key!r} is not greater than {self._last!r}")
        self._block.add(key, value)
        self._last = key
        if len(self._block) >= _BLOCK:
            self._flush()

    def _flush(self) -> None:
        if len(self._block):
            assert self._last is not None
            self._index.add(self._last, self._write(self._block))
            self._block = _BlockWriter(_RESTART)

    def _write(self, block: _BlockWriter) -> bytes:
        """Writes a block; returns where it is, encoded."""
        content = block.finish() + b"\0"  # not compressed
        checksum = struct.pack("<I", masked(extend(0, content)))
        self._file.write(content + checksum)
        handle = varint(self._offset) + varint(len(content) - 1)
        self._offset += len(content) + len(checksum)
        return handle

    def finish(self) -> None:
        """Writes what is left, the index and the footer."""
        self._flush()
        handles = self._write(_BlockWriter(1)) + self._write(self._index)
        self._file.write(handles.ljust(_FOOTER - 8, b"\0") + struct.pack("<Q", _MAGIC))


class TableReader:
    """Reads a table; the index is read at once, blocks when they are needed."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """``name`` is what errors call the file."""
        self._file = file
        self._name = name
        self._size = file.seek(0, 2)
        if self._size < _FOOTER:
            raise self._damaged("it is too short")
        footer = self._bytes(self._size - _FOOTER, _FOOTER)
        if struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
            raise self._damaged("it does not end as a table does")
        _, position = self._handle(footer, 0)
        index, _ = self._handle(footer, position)
        entries = list(self._entries(self._block(index)))
        self._last_keys = [key for key, _ in entries]
        self._handles = [self._handle(value, 0)[0] for _, value in entries]

    def _damaged(self, why: str) -> DataLossError:
        return DataLossError(None, None, f"{self._name} is damaged, or no checkpoint: {why}.")

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset + size > self._size:
            raise self._damaged("something lies behind its end")
        self._file.seek(offset)
        found = self._file.read(size)
        if len(found) != size:
            raise self._damaged("it is shorter than it was")
        return found

    def _handle(self, data: bytes, position: int) -> tuple[tuple[int, int], int]:
        try:
            offset, position = read_varint(data, position)
            size, position = read_varint(data, position)
        except DataLossError as error:
            raise self._damaged(error.message) from None
        return (offset, size), position

    def _block(self, handle: tuple[int, int]) -> bytes:
        offset, size = handle
        content = self._bytes(offset, size + _TRAILER)
        kind, stored = content[size], struct.unpack("<I", content[size + 1 :])[0]
        if masked(extend(0, content[: size + 1])) != stored:
            raise self._damaged(f"the checksum of the block at {offset} is wrong")
        if kind != 0:
            raise UnimplementedError(
                None, None, f"{self._name} has compressed blocks, which cannot be read."
            )
        return content[:size]

    def _entries(self, block: bytes) -> Iterator[tuple[bytes, bytes]]:
        if len(block) < 4:
            raise self._damaged("a block is too short")
        restarts = struct.unpack("<I", block[-4:])[0]
        end = len(block) - 4 * (restarts + 1)
        if end < 0:
            raise self._damaged("a block has no room for its restarts")
        position, key = 0, b""
        while position < end:
            try:
                shared, position = read_varint(block, position)
                own, position = read_varint(block, position)
                size, position = read_varint(block, position)
            except DataLossError as error:
                raise self._damaged(error.message) from None
            if shared > len(key) or position + own + size > end:
                raise self._damaged("an entry does not fit into its block")
            key = key[:shared] + block[position : position + own]
            yield key, block[position + own : position + own + size]
            position += own + size

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, if it is there."""
        number = bisect.bisect_left(self._last_keys, key)
        if number == len(self._handles):
            return None
        return next(
            (v for k, v in self._entries(self._block(self._handles[number])) if k == key), None
        )

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        last: bytes | None = None
        for handle in self._handles:
            for key, value in self._entries(self._block(handle)):
                if last is not None and key <= last:
                    raise self._damaged("its keys are not in order")
                last = key
                yield key, value


def parse(message: Any, data: bytes, name: str) -> Any:
    """``message``, read from ``data`` in the file ``name``."""
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise DataLossError(None, None, f"{name} is damaged: {error}.") from None
    return message
