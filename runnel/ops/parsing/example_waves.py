"""Reading many serialized examples at once: the same field of all of them, then the next one.

A message cannot be read before the one byte that says how long its first field is; but of several
hundred messages those bytes can be read together. So a *wave* goes through all messages, by arrays:
it takes one feature of each, whatever their order and lengths. A message that is written unusually
is left to the general parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType

_LIST_TAGS = {dtypes.string: 0x0A, dtypes.float32: 0x12, dtypes.int64: 0x1A}
_TYPES = {tag: dtype for dtype, tag in _LIST_TAGS.items()}
_PADDING = 64
"""Bytes behind the last message, so that a look ahead finds some."""
_MANY_BYTES = 1 << 16
"""From how many bytes on they are copied in runs."""
_FOUR = np.arange(4)
_LONGEST_KEY = 60


class Unusual(Exception):
    """A feature that is not written as usual; ``rows`` are the messages."""

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__()
        self.rows = rows


class Wave:
    """A feature of some messages: their numbers, the kind of its list, where that stands."""

    def __init__(self, rows: np.ndarray, kinds: Any, begins: np.ndarray, ends: np.ndarray) -> None:
        self.rows, self.kinds, self.begins, self.ends = rows, kinds, begins, ends
        self.found: tuple[Any, np.ndarray] | None = None
        """The values of all, one after the other, and how many each has, once they are read."""

    def chosen(self, which: np.ndarray) -> Wave:
        """The same feature of some of them."""
        return Wave(self.rows[which], self.kinds[which], self.begins[which], self.ends[which])


class ExampleWaves:
    """The features of messages, by their keys, and which messages could be read."""

    def __init__(self, contents: list[bytes]) -> None:
        self._content = b"".join([*contents, bytes(_PADDING)])
        self._bytes = np.frombuffer(self._content, np.uint8)
        sizes = np.fromiter(map(len, contents), np.int64, len(contents))
        ends = np.cumsum(sizes)
        self.usual = np.ones(len(contents), bool)
        """Which messages were read."""
        self._features: dict[bytes, list[Wave]] = {}
        self._read(ends - sizes, ends)

    def _read(self, begins: np.ndarray, ends: np.ndarray) -> None:
        rows = np.flatnonzero(begins < ends)
        size, at = self._numbers(begins[rows] + 1)
        good = (self._bytes[begins[rows]] == 0x0A) & (at + size == ends[rows])
        self.usual[rows[~good]] = False
        rows, at, ends = rows[good], at[good], ends[rows][good]
        while rows.size:
            more = at < ends
            if not more.all():
                rows, at, ends = rows[more], at[more], ends[more]
                if not rows.size:
                    break
            rows, at, ends = self._take_feature(rows, at, ends)
        for waves in self._features.values():
            if len(waves) > 1:
                counts = np.bincount(np.concatenate([wave.rows for wave in waves]))
                self.usual[np.flatnonzero(counts > 1)] = False  # a key twice
        for waves in self._features.values():
            for wave in waves:
                self._check(wave)

    def _check(self, wave: Wave) -> None:
        """Reads the values of a feature, also if nobody asks for them: damage is always found."""
        kinds = np.unique(wave.kinds).tolist()
        for kind in kinds:
            one = wave if len(kinds) == 1 else wave.chosen(wave.kinds == kind)
            if kind not in _TYPES:
                if kind or (one.begins != one.ends).any():
                    self.usual[one.rows] = False
                continue
            while one.rows.size:
                try:
                    one.found = self.values(one, _TYPES[kind])
                    break
                except Unusual as unusual:
                    self.usual[unusual.rows] = False
                    one = one.chosen(self.usual[one.rows])

    def _take_feature(self, rows: np.ndarray, at: np.ndarray, ends: np.ndarray) -> Any:
        """Notes the feature that stands next in each message, and goes behind it."""
        read = self._bytes
        entry = read[at[:, None] + _FOUR]
        inner, tag = at + 2, entry[:, 2]
        entry_size, key_size = entry[:, 1].astype(np.int64), entry[:, 3]
        if (entry_size > 127).any():
            entry_size, inner = self._numbers(at + 1)
            inner = np.minimum(inner, len(read) - _PADDING)
            tag, key_size = read[inner], read[inner + 1]
        entry_end = inner + entry_size
        key_at = inner + 2
        good = (entry[:, 0] == 0x0A) & (tag == 0x0A) & (key_size <= _LONGEST_KEY)
        good &= entry_end <= ends
        value_at = np.minimum(key_at + key_size, len(read) - _PADDING)
        value = read[value_at[:, None] + _FOUR]
        inside, size = value_at + 2, value[:, 1].astype(np.int64)
        kinds, list_at, list_size = value[:, 2], value_at + 4, value[:, 3].astype(np.int64)
        if (size > 127).any() or (list_size > 127).any():
            size, inside = self._numbers(value_at + 1)
            inside = np.minimum(inside, len(read) - _PADDING)
            kinds = read[inside]
            list_size, list_at = self._numbers(inside + 1)
        empty = size == 0
        good &= (value[:, 0] == 0x12) & (inside + size == entry_end)
        good &= empty | (list_at + list_size == entry_end)
        if empty.any():
            kinds, list_at = np.where(empty, 0, kinds), np.where(empty, entry_end, list_at)
        if not good.all():
            self.usual[rows[~good]] = False
            rows, key_at, key_size = rows[good], key_at[good], key_size[good]
            kinds, list_at, entry_end, ends = (
                part[good] for part in (kinds, list_at, entry_end, ends)
            )
        self._note(key_at, key_size, Wave(rows, kinds, list_at, entry_end))
        return rows, entry_end, ends

    def _note(self, key_at: np.ndarray, key_size: np.ndarray, wave: Wave) -> None:
        """Notes features under their keys, which are mostly the same."""
        while wave.rows.size:
            begin, size = int(key_at[0]), int(key_size[0])
            key = self._content[begin : begin + size]
            found = self._bytes[key_at[:, None] + np.arange(size)]
            same = (key_size == size) & (found == np.frombuffer(key, np.uint8)).all(axis=1)
            try:
                key.decode()
            except UnicodeDecodeError:
                self.usual[wave.rows[same]] = False
            if same.all():
                self._features.setdefault(key, []).append(wave)
                return
            self._features.setdefault(key, []).append(wave.chosen(same))
            key_at, key_size, wave = key_at[~same], key_size[~same], wave.chosen(~same)

    def _numbers(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of variable length at places, and where what follows them begins."""
        at = np.minimum(at, len(self._bytes) - _PADDING)
        byte = self._bytes[at].astype(np.int64)
        if (byte < 128).all():
            return byte, at + 1
        value, shift = byte & 0x7F, 7
        going = byte >= 128
        at = at + 1
        while going.any() and shift < 63:
            byte = self._bytes[np.minimum(at, len(self._bytes) - 1)].astype(np.int64)
            value = np.where(going, value | (byte & 0x7F) << shift, value)
            at = at + going
            going &= byte >= 128
            shift += 7
        # What is not a length, or longer than all there is, fits nowhere.
        value[going | (value > len(self._bytes))] = len(self._bytes)
        return value, at

    # Values -----------------------------------------------------------------------------------

    def waves(self, key: str) -> Iterator[Wave]:
        """Where the feature ``key`` stands, in the messages that were read."""
        for wave in self._features.get(key.encode(), ()):
            if self.usual.all():
                yield wave
            else:
                yield wave.chosen(self.usual[wave.rows])

    def another_type(self, wave: Wave, dtype: DType) -> tuple[int, str] | None:
        """A message whose feature is of another type, and which."""
        wrong = (wave.kinds != _LIST_TAGS[dtype]) & (wave.kinds != 0)
        if not wrong.any():
            return None
        place = int(np.argmax(wrong))
        found = _TYPES.get(int(wave.kinds[place]))
        if found is None:
            raise Unusual(wave.rows[wrong])
        return int(wave.rows[place]), found.name

    def values(self, wave: Wave, dtype: DType) -> tuple[Any, np.ndarray]:
        """The values of a feature one after the other, and how many each message has.

        Raises ``Unusual`` for messages that the general parser must read.
        """
        if wave.found is not None:
            return wave.found
        none = wave.begins == wave.ends
        size, at = self._numbers(np.where(none, 0, wave.begins + 1))
        usual = (self._bytes[wave.begins] == 0x0A) & (at + size == wave.ends)
        if none.any():
            size[none] = 0
            usual |= none
        if dtype is dtypes.string:
            return self._strings(wave, at, size, usual, none)
        if not usual.all():
            raise Unusual(wave.rows[~usual])
        found = self._joined(at, size)
        if dtype is dtypes.float32:
            if (size & 3).any():
                raise Unusual(wave.rows[size % 4 != 0])
            return found.view("<f4"), size >> 2
        return self._integers(wave, found, size)

    def _joined(self, at: np.ndarray, size: np.ndarray) -> np.ndarray:
        """The bytes at places, so many of each, one after the other."""
        stops = np.cumsum(size)
        total = int(stops[-1])
        if total > _MANY_BYTES:
            content = self._content
            ends = (at + size).tolist()
            return np.frombuffer(
                b"".join([content[a:b] for a, b in zip(at.tolist(), ends, strict=True)]), np.uint8
            )
        return self._bytes[np.repeat(at - stops + size, size) + np.arange(total)]

    def _integers(self, wave: Wave, found: np.ndarray, size: np.ndarray) -> Any:
        """Numbers of variable length; ``size`` has how many bytes each message has of them."""
        if not len(found):
            return np.empty(0, np.int64), size
        last = found < 128
        stops = np.flatnonzero(last)
        counts = np.concatenate([[0], np.cumsum(last)])[np.cumsum(size)]
        cut = (size > 0) & ~last[np.cumsum(size) - 1]
        if cut.any():
            raise Unusual(wave.rows[cut])
        starts = np.concatenate([[0], stops[:-1] + 1])
        lengths = stops - starts + 1
        longest = int(lengths.max(initial=0))
        if longest > 10:
            raise Unusual(wave.rows)
        values = np.zeros(len(stops), np.uint64)
        for place in range(longest):
            digits = found[np.minimum(starts + place, len(found) - 1)].astype(np.uint64) & 0x7F
            if place:
                digits = np.where(lengths > place, digits << np.uint64(7 * place), 0)
            values |= digits
        return values.view(np.int64), np.diff(counts, prepend=0)

    def _strings(
        self, wave: Wave, at: np.ndarray, size: np.ndarray, usual: np.ndarray, none: np.ndarray
    ) -> tuple[Any, np.ndarray]:
        content = self._content
        if usual.all() and not none.any():
            ends = (at + size).tolist()
            found = [content[a:b] for a, b in zip(at.tolist(), ends, strict=True)]
            return found, np.ones(len(found), np.int64)
        found, counts = [], []
        for row, begin, end in zip(
            wave.rows, wave.begins.tolist(), wave.ends.tolist(), strict=True
        ):
            before = len(found)
            while begin < end:
                length, after = self._numbers(np.array([begin + 1]))
                stop = int(after[0] + length[0])
                if content[begin] != 0x0A or stop > end:
                    raise Unusual(np.array([row]))
                found.append(content[int(after[0]) : stop])
                begin = stop
            counts.append(len(found) - before)
        return found, np.array(counts, np.int64)
