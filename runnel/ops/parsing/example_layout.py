"""Reading many serialized examples at once: those that are laid out alike, as columns of bytes.

Examples of one writer mostly differ in their values alone: the same features in the same order, as
many values each, numbers of the same width. So one message is taken apart, and the others that have
the same bytes wherever it has no values are read in its way, by arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runnel.checkpoint.varint import read_varint
from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.graph.errors import DataLossError

FIELDS = {1: dtypes.string, 2: dtypes.float32, 3: dtypes.int64}
"""The types of the lists that a feature may be, by their numbers."""
_ENOUGH = 8
"""How many messages of a length make it worth while."""


class _Unusual(Exception):
    """A message that is not written as usual."""


@dataclass(slots=True)
class ExampleLayout:
    """Where the values of features stand in a message; each is (position, size) of some bytes."""

    features: dict[str, tuple[DType | None, list[tuple[int, int]]]] = field(default_factory=dict)
    fixed: Any = None
    """Which bytes are the same in every message of this layout."""
    marks: Any = None
    """The positions of bytes of numbers, whose highest bit is the same in every message."""


def layout_of(content: bytes) -> ExampleLayout | None:
    """How ``content``, a serialized ``Example``, is laid out; None if it is written unusually."""
    found = ExampleLayout()
    try:
        for begin, end in _fields(content, 0, len(content), 1):
            for entry in _fields(content, begin, end, 1):
                _add_feature(found, content, *entry)
    except (_Unusual, UnicodeDecodeError, DataLossError):
        return None
    fixed = np.ones(len(content), bool)
    marks: list[int] = []
    for dtype, parts in found.features.values():
        for begin, size in parts:
            fixed[begin : begin + size] = False
            if dtype is dtypes.int64:
                marks += range(begin, begin + size)
    found.fixed, found.marks = fixed, np.array(marks, np.int64)
    return found


def _fields(content: bytes, begin: int, end: int, number: int) -> Iterator[tuple[int, int]]:
    """Where each value of the field ``number``, the only one there, begins and ends."""
    while begin < end:
        if content[begin] != number << 3 | 2:
            raise _Unusual
        size, begin = read_varint(content, begin + 1)
        if begin + size > end:
            raise _Unusual
        yield begin, begin + size
        begin += size


def _add_feature(found: ExampleLayout, content: bytes, begin: int, end: int) -> None:
    """Notes a feature, which stands in an entry of the map of features."""
    if content[begin : begin + 1] != b"\x0a":
        raise _Unusual
    size, start = read_varint(content, begin + 1)
    key, after = content[start : start + size].decode(), start + size
    values = list(_fields(content, after, end, 2))
    if key in found.features or len(values) != 1 or after > end:
        raise _Unusual
    found.features[key] = _values(content, *values[0])


def _values(content: bytes, begin: int, end: int) -> tuple[DType | None, list[tuple[int, int]]]:
    if begin == end:
        return None, []
    number = content[begin] >> 3
    lists = list(_fields(content, begin, end, number))
    if number not in FIELDS or len(lists) != 1:
        raise _Unusual
    dtype = FIELDS[number]
    items = list(_fields(content, *lists[0], 1))
    if dtype is dtypes.string:
        return dtype, [(start, stop - start) for start, stop in items]
    if len(items) > 1:
        raise _Unusual
    if not items:
        return dtype, []
    start, stop = items[0]
    if dtype is dtypes.float32:
        if (stop - start) % 4:
            raise _Unusual
        return dtype, [(start, stop - start)] if stop > start else []
    return dtype, list(_numbers(content, start, stop))


def _numbers(content: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the numbers of a packed list stand."""
    while begin < end:
        _, after = read_varint(content, begin)
        if after > end:
            raise _Unusual
        yield begin, after - begin
        begin = after


class Group:
    """Messages of one layout, and their bytes."""

    def __init__(self, layout: ExampleLayout, contents: list[bytes], matrix: Any) -> None:
        self._layout, self._contents, self._matrix = layout, contents, matrix

    def type_of(self, key: str) -> DType | None:
        """The type of a feature; None where it is missing."""
        return self._layout.features.get(key, (None, []))[0]

    def values(self, key: str) -> np.ndarray:
        """The values of a feature, a row for each message."""
        dtype, parts = self._layout.features[key]
        if dtype is dtypes.string:
            out = np.empty((len(self._contents), len(parts)), object)
            for i, content in enumerate(self._contents):
                out[i] = [content[begin : begin + size] for begin, size in parts]
            return out
        if dtype is dtypes.float32:
            if not parts:
                return np.empty((len(self._contents), 0), np.float32)
            begin, size = parts[0]
            return np.ascontiguousarray(self._matrix[:, begin : begin + size]).view("<f4")
        return self._integers(parts)

    def _integers(self, parts: list[tuple[int, int]]) -> np.ndarray:
        out = np.empty((len(self._contents), len(parts)), np.uint64)
        begins, sizes = np.array(parts, np.int64).reshape(-1, 2).T
        for size in np.unique(sizes):
            chosen = np.flatnonzero(sizes == size)
            places = begins[chosen][:, None] + np.arange(size)
            digits = (self._matrix[:, places] & 0x7F).astype(np.uint64)
            shifts = (np.arange(size) * 7).astype(np.uint64)
            out[:, chosen] = np.bitwise_or.reduce(digits << shifts, axis=-1)
        return out.view(np.int64)


def whole_group(contents: list[bytes]) -> Group | None:
    """The messages, if all of them are laid out alike."""
    if len(contents) < _ENOUGH or not contents[0]:
        return None
    length = len(contents[0])
    if any(len(content) != length for content in contents):
        return None
    layout = layout_of(contents[0])
    if layout is None:
        return None
    matrix = np.frombuffer(b"".join(contents), np.uint8).reshape(len(contents), length)
    if not _alike(matrix, matrix[0], layout).all():
        return None
    return Group(layout, contents, matrix)


def _alike(matrix: np.ndarray, template: np.ndarray, layout: ExampleLayout) -> np.ndarray:
    """Which rows are laid out as ``template`` is."""
    alike = (matrix[:, layout.fixed] == template[layout.fixed]).all(axis=1)
    if len(layout.marks):
        changed = (matrix[:, layout.marks] ^ template[layout.marks]) & 0x80
        alike &= ~changed.any(axis=1)
    return np.asarray(alike)
