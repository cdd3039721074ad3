"""Reading many serialized examples at once: what stands where in all of them, by arrays.

A message cannot be read before the one byte that says how long its first feature is; but of several
hundred messages those bytes can be read together. So a *wave* goes through all messages: it takes
one feature of each, until none has more. Which key each feature has, of which kind it is and where
its values are is then read of all features at once, whatever their order in the messages. A message
that is written unusually is left to the general parser.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.ops.parsing.example_bytes import (
    LIST_TAGS,
    LONGEST_NUMBER,
    LOW_BYTES,
    PADDING,
    AnotherType,
    joined_bytes,
    numbers_in,
)

_STRING, _FLOAT, _INT = (LIST_TAGS[kind] for kind in (dtypes.string, dtypes.float32, dtypes.int64))
_LONGEST_KEY = 60
_MIXER = np.uint64(0x9E3779B97F4A7C15)


_IS_KIND = np.isin(np.arange(256), (_STRING, _FLOAT, _INT))


class ExampleWaves:
    """The features of messages, by their keys, and which messages could be read."""

    def __init__(self, contents: list[bytes]) -> None:
        self._content = b"".join([*contents, bytes(PADDING)])
        self._bytes = np.frombuffer(self._content, np.uint8)
        self._last = len(self._bytes) - PADDING
        sizes = np.fromiter(map(len, contents), np.int64, len(contents))
        ends = np.cumsum(sizes)
        self.usual = np.ones(len(contents), bool)
        """Which messages were read."""
        self._keys: dict[bytes, slice] = {}
        """Where the features of a key are among all features, in the order of messages."""
        self._further: list[tuple[np.ndarray, ...]] = []
        """Strings behind the first of a list: the feature, where each begins and ends."""
        self._numbers_of: tuple[np.ndarray, np.ndarray] | None = None
        """The integers of all features, and how many come before each, and at last."""
        rows, begins, stops = self._entries(ends - sizes, ends)
        if rows.size:
            self._find_features(rows, begins, stops)

    def _words(self, kind: str, at: np.ndarray) -> np.ndarray:
        """The little-endian numbers of some bytes that begin at places."""
        count = len(self._bytes) - np.dtype(kind).itemsize + 1
        return np.ndarray((count,), kind, self._content, strides=(1,))[np.minimum(at, count - 1)]

    def _doubt(self, good: np.ndarray, rows: np.ndarray) -> bool:
        """Leaves the messages where something is not ``good``; whether there were any."""
        if good.all():
            return False
        self.usual[rows[~good]] = False
        return True

    # Places -----------------------------------------------------------------------------------

    def _entries(self, begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, ...]:
        """All entries of the maps of features: the message of each, where it begins and ends."""
        rows = np.flatnonzero(begins < ends)
        at, ends = begins[rows], ends[rows]
        size, inner = self._numbers(at + 1)
        good = (self._bytes[at] == 0x0A) & (inner + size == ends)
        at = inner
        if self._doubt(good, rows):
            rows, at, ends = rows[good], at[good], ends[good]
        found: list[tuple[np.ndarray, ...]] = []
        heads = np.ndarray((len(self._bytes) - 1,), "<u2", self._content, strides=(1,))
        while rows.size:
            more = at < ends
            if not more.all():
                rows, at, ends = rows[more], at[more], ends[more]
                continue
            head = heads[at]
            if (head & 0x80FF != 0x0A).any():  # something else, or an entry of more than 127 bytes
                size, inner = self._numbers(at + 1)
                stop = inner + size
                good = (head & 0xFF == 0x0A) & (stop <= ends)
                if self._doubt(good, rows):
                    rows, inner, stop, ends = rows[good], inner[good], stop[good], ends[good]
            else:
                inner = at + 2
                stop = inner + (head >> 8)
            found.append((rows, inner, stop))
            at = stop
        self.usual[rows[at != ends]] = False
        if not found:
            return rows, at, ends
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def _find_features(self, rows: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> None:
        """Notes where the values of each feature stand."""
        head = self._words("<u2", begins)
        key_size = head >> 8
        value_at = begins + 2 + key_size
        good = (head & 0xFF == 0x0A) & (key_size <= _LONGEST_KEY)
        head = self._words("<u4", value_at)
        list_at = value_at + 4
        kinds = (head >> 16 & 0xFF).astype(np.uint8)
        values = self._words("<u2", list_at)
        size, at = (values >> 8).astype(np.int64), list_at + 2
        # Mostly all is short, and a list has one value or one run of numbers.
        short = ((head & 0x800080FF) == 0x12) & (values & 0x80FF == 0x0A)
        short &= _IS_KIND[kinds] & (at + size == ends)
        short &= ((head >> 8 & 0xFF) == size + 4) & (head >> 24 == size + 2)
        none = None
        if not (short & good).all():
            kinds, at, size, none, good = self._of_any_length(good, value_at, ends)
        # Numbers end where the list does.
        good &= (kinds != _FLOAT) | (size & 3 == 0)
        cut = self._bytes[np.minimum(ends, self._last) - 1] >= 128
        good &= (kinds != _INT) | ~cut if none is None else (kinds != _INT) | none | ~cut
        # A list without values ends before they begin.
        ends = ends if none is None else np.where(none, at - 1, ends)
        places = [rows, kinds, at, size, ends, begins + 2, key_size]
        if self._doubt(good, rows) or not self.usual.all():
            kept = self.usual[rows]
            places = [part[kept] for part in places]
        self._sort(places)

    def _of_any_length(self, good: np.ndarray, value_at: np.ndarray, ends: np.ndarray) -> Any:
        """The kind of each feature, where its values are, how long, whether it has none."""
        good = good & (self._words("<u2", value_at) & 0xFF == 0x12) & (value_at < ends)
        size, inside = self._numbers(value_at + 1)
        empty = size == 0
        kinds = np.where(empty, 0, self._bytes[inside])
        list_size, list_at = self._numbers(inside + 1)
        good &= (inside + size == ends) & (empty | (list_at + list_size == ends))
        good &= empty | _IS_KIND[kinds]
        none = empty | (list_at >= ends)
        size, at = self._numbers(list_at + 1)
        size[none] = 0
        stop = at + size
        several = (kinds == _STRING) & (stop <= ends)
        good &= none | ((self._bytes[list_at] == 0x0A) & ((stop == ends) | several))
        return kinds, at, size, none, good

    def _sort(self, places: list[np.ndarray]) -> None:
        """Brings features into the order of keys, those of a key into the order of messages."""
        rows, *_, key_at, key_size = places
        wide = key_size.astype(np.int64)
        first = self._words("<u8", key_at) & LOW_BYTES[np.minimum(wide, 8)]
        codes = first * _MIXER + key_size
        if wide.max(initial=0) > 8:
            tail = self._words("<u8", key_at + np.maximum(wide - 8, 0))
            codes ^= np.where(wide > 8, tail * _MIXER, 0)
        order = np.lexsort((rows, codes))
        places = [part[order] for part in places]
        codes = codes[order]
        cuts = np.flatnonzero(codes[1:] != codes[:-1]) + 1
        bounds = [0, *cuts.tolist(), len(codes)]
        self._rows, self._kinds, self._at, self._size, self._ends, key_at, key_size = places
        for begin, end in itertools.pairwise(bounds):
            self._note_key(slice(begin, end), key_at, key_size)
        self._find_doubles(codes)
        if (self._size[self._kinds == _INT] > LONGEST_NUMBER).any():
            self._integers()  # damage is found also if nobody asks for the numbers
        self._find_strings()

    def _note_key(self, which: slice, key_at: np.ndarray, key_size: np.ndarray) -> None:
        """Notes the features of a key; where others share its code, those are unusual."""
        if which.start == which.stop:
            return
        begin, size = int(key_at[which.start]), int(key_size[which.start])
        key = self._content[begin : begin + size]
        if size > 16:  # the code does not tell all of it
            found = self._words(f"V{size}", key_at[which])
            self.usual[self._rows[which][found != found[0]]] = False
        try:
            key.decode()
        except UnicodeDecodeError:
            self.usual[self._rows[which]] = False
        self._keys[key] = which

    def _find_doubles(self, codes: np.ndarray) -> None:
        """Leaves messages that have a feature twice."""
        again = (np.diff(self._rows) == 0) & (codes[1:] == codes[:-1])
        self.usual[self._rows[1:][again]] = False

    def _numbers(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of variable length at places, and where what follows them begins."""
        at = np.minimum(at, self._last)
        byte = self._bytes[at].astype(np.int64)
        going = byte >= 128
        value, at, shift = byte & 0x7F, at + 1, 7
        while going.any() and shift < 63:
            byte = self._bytes[np.minimum(at, len(self._bytes) - 1)].astype(np.int64)
            value = np.where(going, value | (byte & 0x7F) << shift, value)
            at = at + going
            going &= byte >= 128
            shift += 7
        # What is not a length, or cut, or longer than all there is, fits nowhere.
        value[going | (at > self._last) | (value > len(self._bytes))] = len(self._bytes)
        return value, np.minimum(at, self._last)

    # Values -----------------------------------------------------------------------------------

    def column(self, key: str, dtype: DType) -> tuple[Any, np.ndarray]:
        """The values of a feature of all messages, one after the other, and how many each has.

        Where it is missing, or the message was not read, that is -1. Raises ``AnotherType``.
        """
        which, count = self._keys.get(key.encode()), len(self.usual)
        if which is None:
            return np.empty(0, dtype.np_dtype), np.full(count, -1)
        rows, kinds = self._rows[which], self._kinds[which]
        read, fits = self.usual[rows], kinds == LIST_TAGS[dtype]
        plain = bool((fits & read).all())
        if not plain:
            wrong = read & ~fits & (kinds != 0)
            if wrong.any():
                place = int(np.argmax(wrong))
                raise AnotherType(int(rows[place]), int(kinds[place]))
        flat, found = self._values(which, dtype)
        if plain and len(rows) == count:
            return flat, found
        counts = np.full(count, -1)
        counts[rows] = np.where((kinds != 0) & read, found, -1)
        if plain:
            return flat, counts
        kept = np.repeat(read, found)
        if isinstance(flat, list):
            return [value for value, keep in zip(flat, kept, strict=True) if keep], counts
        return flat[kept], counts

    def _values(self, which: slice, dtype: DType) -> tuple[Any, np.ndarray]:
        """The values of some features, and how many each has."""
        if dtype is dtypes.string:
            return self._strings(which)
        if dtype is dtypes.float32:
            size = np.where(self._kinds[which] == _FLOAT, self._size[which], 0)
            return joined_bytes(self._content, self._at[which], size).view("<f4"), size >> 2
        flat, before = self._integers()
        before = before[which.start : which.stop + 1]
        return flat[before[0] : before[-1]], before[1:] - before[:-1]

    def _integers(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of variable length."""
        if self._numbers_of is None:
            size = np.where(self._kinds == _INT, self._size, 0)
            before = np.concatenate([[0], np.cumsum(size)])
            found = joined_bytes(self._content, self._at, size)
            values, first, long = numbers_in(found, before)
            entries = np.searchsorted(before, long, "right") - 1
            self.usual[self._rows[entries]] = False
            self._numbers_of = values, first
        return self._numbers_of

    def _find_strings(self) -> None:
        """Notes the strings of lists behind their first, those of all lists in waves."""
        entries = np.flatnonzero((self._kinds == _STRING) & (self._at + self._size < self._ends))
        stops, ends = (self._at + self._size)[entries], self._ends[entries]
        while entries.size:
            size, at = self._numbers(stops + 1)
            good = (self._bytes[stops] == 0x0A) & (at + size <= ends)
            if self._doubt(good, self._rows[entries]):
                entries, at, size, ends = entries[good], at[good], size[good], ends[good]
            stops = at + size
            self._further.append((entries, at, stops))
            more = stops < ends
            entries, stops, ends = entries[more], stops[more], ends[more]

    def _strings(self, which: slice) -> tuple[list[bytes], np.ndarray]:
        content, begins = self._content, self._at[which]
        stops = begins + self._size[which]
        counts = np.ones(len(stops), np.int64)
        if (stops != self._ends[which]).any():
            some = np.flatnonzero(begins <= self._ends[which])
            pieces = [(some, begins[some], stops[some])]
            for entries, at, end in self._further:
                here = (entries >= which.start) & (entries < which.stop)
                pieces.append((entries[here] - which.start, at[here], end[here]))
            entries, begins, stops = (np.concatenate(part) for part in zip(*pieces, strict=True))
            order = np.argsort(entries, kind="stable")
            begins, stops = begins[order], stops[order]
            counts = np.bincount(entries, minlength=len(counts))
        spans = zip(begins.tolist(), stops.tolist(), strict=True)
        return [content[a:b] for a, b in spans], counts
