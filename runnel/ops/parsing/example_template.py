"""Reading many serialized examples that have the features of the first, in its order.

A writer mostly writes the same features, each with one list, and only their lengths differ. Then
all that stands before the values of a feature is known from the first message, but for four lengths
that differ from its own by the same number. So features are found by adding lengths up, and one
comparison over all of them tells whether they were the expected ones.
"""

from __future__ import annotations

import bisect
import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from runnel.checkpoint.varint import read_varint
from runnel.graph import dtypes
from runnel.graph.dtypes import DType
from runnel.graph.errors import DataLossError
from runnel.ops.parsing.example_bytes import (
    LIST_TAGS,
    LOW_BYTES,
    PADDING,
    WORD,
    AnotherType,
    joined_bytes,
    number_of_sevens,
    numbers_in,
    runs_at,
    words_at,
)

_LONG = 128
"""From here on a length takes more than one byte, and is taken to be the same in every message."""
_LONGEST_HEAD = 48
"""Bytes before the values of a feature: with more they are unusual."""
_LIST_KINDS = frozenset(LIST_TAGS.values())
_HIGH_BITS = np.uint64(0x8080808080808080)
_INSIDE = np.append(LOW_BYTES, np.uint64(0))
"""Masks of the bytes of a list, by how many there are."""
_GOING_ON = np.array([1, *(LOW_BYTES[:WORD] & _HIGH_BITS), 1], np.uint64)
"""Which of these say that a number goes on, if there is only one; none of no bytes or too many."""
_SIZES = [(1 << 7 * width) + width for width in range(1, 5)]
"""Bytes that a message has at most if the length of its features takes one, two, ... bytes."""


class _Unusual(Exception):
    """A message that is not written as usual."""


@dataclass(frozen=True, slots=True)
class ExampleTemplate:
    """The features of a message, in order; arrays have a row for each."""

    keys: list[bytes]
    kinds: list[int]
    totals: list[int]
    """How many bytes the entry of a feature has in all, where it is long; else 0."""
    before: np.ndarray
    """Two bytes for each feature before."""
    length: np.ndarray
    """How long the entry says to be."""
    room: np.ndarray
    """How much longer it may be."""
    head_size: np.ndarray
    """How many bytes stand before the values."""
    value_size: np.ndarray
    head: np.ndarray
    """What stands before the values, in words of eight bytes."""
    head_mask: np.ndarray
    """Which bits of these words do."""
    head_step: np.ndarray
    """Which bytes of these words are lengths that grow with that of the entry."""

    def places(
        self, content: bytes, starts: np.ndarray, ends: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Where the values of features begin, and their sizes: a row for each, a column a message.

        ``starts`` and ``ends`` say where the entries of each message are, in ``content``, behind
        which there is some padding. None where a message has other features than the template.
        """
        count = len(self.keys)
        at = np.empty((count + 1, len(starts)), np.int64)
        length = np.empty((count, len(starts)), np.uint8)
        at[0] = starts
        lengths = np.frombuffer(content, np.uint8, offset=1)
        try:
            for i, total in enumerate(self.totals):
                # Two bytes more for each feature, which need not be added then.
                length[i] = found_length = lengths[2 * i :][at[i]]
                np.add(at[i], total - 2 if total else found_length, out=at[i + 1])
        except IndexError:
            return None
        at += self.before
        grown = length - self.length
        if any(self.totals):
            grown[np.array(self.totals) > 0] = 0
        value_size = self.value_size + grown
        if not (at[-1] == ends).all() or value_size.min() < 0 or (grown > self.room).any():
            return None
        at = at[:-1]
        width = len(self.head)
        found = runs_at(content, at.ravel(), WORD * width).view("<u8").reshape(*at.shape, width)
        steps = grown.view(np.uint64)
        for i in range(width):
            wanted = steps * self.head_step[i]
            wanted += self.head[i]
            wanted ^= found[:, :, i]
            wanted &= self.head_mask[i]
            if wanted.any():
                return None
        return at + self.head_size, value_size


def template_of(content: bytes, begin: int, end: int) -> ExampleTemplate | None:
    """The template that entries make, which stand in a part of ``content``; None if unusual."""
    rows: list[tuple[int, int, int, int, int]] = []
    keys: list[bytes] = []
    words: list[bytes] = []
    try:
        while begin < end:
            entry, stop = _inside(content, begin, 0x0A)
            key_at, value = _inside(content, entry, 0x0A)
            feature, feature_end = _inside(content, value, 0x12)
            kind = content[feature]
            listed, list_end = _inside(content, feature, kind)
            values, values_end = _inside(content, listed, 0x0A)
            size = values - begin
            usual = kind in _LIST_KINDS and size <= _LONGEST_HEAD and stop <= end
            if not usual or not values_end == list_end == feature_end == stop:
                return None
            key = content[key_at:value]
            key.decode()
            keys.append(key)
            short = stop - entry < _LONG
            rows.append((kind, stop - entry, size, stop - values, 0 if short else stop - begin))
            words += content[begin:values].ljust(_LONGEST_HEAD, b"\0"), *_marks(size, short)
            begin = stop
    except (_Unusual, DataLossError, UnicodeDecodeError, IndexError):
        return None
    if not keys or len(set(keys)) < len(keys):
        return None
    kinds, length, head_size, value_size, totals = np.array(rows, np.int64).T[:, :, None]
    parts = np.frombuffer(b"".join(words), "<u8").reshape(len(keys), 3, -1)
    parts = parts[:, :, : -(-int(head_size.max()) // 8)]
    head, mask, step = np.ascontiguousarray(parts.transpose(1, 2, 0))[..., None]
    return ExampleTemplate(
        keys=keys,
        kinds=kinds[:, 0].tolist(),
        totals=totals[:, 0].tolist(),
        before=2 * np.arange(len(keys) + 1)[:, None],
        length=length,
        room=np.maximum(_LONG - 1 - length, 0),
        head_size=head_size,
        value_size=value_size,
        head=head,
        head_mask=mask,
        head_step=step,
    )


@functools.cache
def _marks(size: int, short: bool) -> tuple[bytes, bytes]:
    """Which bytes stand before the values, and which of these are lengths that grow together."""
    lengths = (1, size - 5, size - 3, size - 1) if short else ()
    step = bytes(place in lengths for place in range(_LONGEST_HEAD))
    return (b"\xff" * size).ljust(_LONGEST_HEAD, b"\0"), step


def _inner(content: bytes, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray | None:
    """Where the entries of messages begin; None where one has something else than features."""
    least, most = (bisect.bisect_left(_SIZES, int(size)) + 1 for size in (sizes.min(), sizes.max()))
    width: Any = least if least == most else np.searchsorted(_SIZES, sizes) + 1
    inside = sizes - (width + 1)
    if inside.min() < 0 or most > len(_SIZES):
        return None
    words = words_at(content, begins)
    tagged = words & np.uint64(0xFF) == 0x0A
    words = words >> np.uint64(8) & LOW_BYTES[width]
    going = LOW_BYTES[width - 1] & _HIGH_BITS
    fits = (number_of_sevens(words) == inside.view(np.uint64)) & (words & _HIGH_BITS == going)
    return begins + (width + 1) if (tagged & fits).all() else None


def _inside(content: bytes, at: int, tag: int) -> tuple[int, int]:
    """Where the bytes of a field with ``tag`` begin and end."""
    if content[at] != tag:
        raise _Unusual
    size = content[at + 1]
    if size < _LONG:
        return at + 2, at + 2 + size
    size, begin = read_varint(content, at + 1)
    return begin, begin + size


class AlikeExamples:
    """Messages that have the same features in the same order, each of one kind in all of them."""

    _latest: ClassVar[ExampleTemplate | None] = None
    """The template that fitted last: to messages of the same writer it mostly fits again."""

    def __init__(
        self, content: bytes, template: ExampleTemplate, at: np.ndarray, size: np.ndarray
    ) -> None:
        self._content, self._template, self._at, self._size = content, template, at, size
        self._index = {key: i for i, key in enumerate(template.keys)}
        self._integers: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        """The integers of a feature in all messages, and how many each has."""

    @classmethod
    def of(cls, contents: list[bytes]) -> AlikeExamples | None:
        """The messages, if they are alike and their numbers whole."""
        content = b"".join([*contents, bytes(PADDING)])
        sizes = np.fromiter(map(len, contents), np.int64, len(contents))
        ends = np.cumsum(sizes)
        starts = _inner(content, ends - sizes, sizes)
        if starts is None:
            return None
        template = cls._latest
        places = None if template is None else template.places(content, starts, ends)
        if places is None:
            template = template_of(content, int(starts[0]), int(ends[0]))
            places = None if template is None else template.places(content, starts, ends)
        if template is None or places is None:
            return None
        cls._latest = template
        found = cls(content, template, *places)
        return found if found._has_whole_floats() and found._read_integers() else None

    def _has_whole_floats(self) -> bool:
        tag = LIST_TAGS[dtypes.float32]
        which = [i for i, kind in enumerate(self._template.kinds) if kind == tag]
        return not (self._size[which] & 3).any()

    def _read_integers(self) -> bool:
        """Reads the integers of all features; False if one is cut or too long."""
        tag = LIST_TAGS[dtypes.int64]
        which = [i for i, kind in enumerate(self._template.kinds) if kind == tag]
        if not which:
            return True
        at, size = self._at[which], self._size[which]
        if np.frombuffer(self._content, np.uint8)[at + size - 1].max() >= 128:
            return False
        # Mostly each list has one number: all its bytes say that there are more, but the last.
        words = words_at(self._content, at)
        small = np.minimum(size, WORD + 1)
        words &= _INSIDE[small]
        single = (words & _HIGH_BITS == _GOING_ON[small]).all(axis=1)
        values = number_of_sevens(words).view(np.int64)
        one = np.ones(at.shape[1], np.int64)
        for row, i in enumerate(which):
            if single[row]:
                self._integers[i] = values[row], one
                continue
            before = np.concatenate([[0], np.cumsum(size[row])])
            found = joined_bytes(self._content, at[row], size[row])
            flat, first, long = numbers_in(found, before)
            if len(long):
                return False
            self._integers[i] = flat, np.diff(first)
        return True

    def column(self, key: str, dtype: DType) -> tuple[Any, np.ndarray]:
        """The values of a feature of all messages, one after the other, and how many each has.

        Where it is missing that is -1. Raises ``AnotherType``.
        """
        i, count = self._index.get(key.encode()), self._at.shape[1]
        if i is None:
            return np.empty(0, dtype.np_dtype), np.full(count, -1)
        kind = self._template.kinds[i]
        if kind != LIST_TAGS[dtype]:
            raise AnotherType(0, kind)
        if dtype is dtypes.int64:
            return self._integers[i]
        at, size = self._at[i], self._size[i]
        if dtype is dtypes.float32:
            return joined_bytes(self._content, at, size).view("<f4"), size >> 2
        content = self._content
        spans = zip(at.tolist(), (at + size).tolist(), strict=True)
        return [content[a:b] for a, b in spans], np.ones(count, np.int64)
