"""Values out of the bytes of many features: runs of bytes, and numbers of variable length."""

from __future__ import annotations

import numpy as np

from runnel.graph import dtypes

LIST_TAGS = {dtypes.string: 0x0A, dtypes.float32: 0x12, dtypes.int64: 0x1A}
"""What the list of a feature begins with, by the type of its values."""
_TYPES = {tag: dtype for dtype, tag in LIST_TAGS.items()}
PADDING = 64
"""Bytes behind the last message, so that a look ahead finds some."""
LONGEST_NUMBER = 10
"""Bytes of an integer, at most."""
WORD = 8
_MANY_BYTES = 1 << 16
"""From how many bytes on they are copied in runs."""
LOW_BYTES = np.array([(1 << 8 * n) - 1 for n in range(WORD + 1)], np.uint64)
"""Masks of the first bytes of a word."""
_SEVEN_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_MOVES = [
    tuple(map(np.uint64, (step, low, low << 7 * step)))
    for step, low in ((1, 0x007F007F007F007F), (2, 0x00003FFF00003FFF), (4, 0x0FFFFFFF))
]
"""How far bits move down; those that stay; where the others come to."""


class AnotherType(Exception):
    """A feature of the message ``row`` is of another type than wanted, ``found``."""

    def __init__(self, row: int, tag: int) -> None:
        super().__init__()
        self.row, self.found = row, _TYPES[tag].name


def runs_at(content: bytes, at: np.ndarray, size: int) -> np.ndarray:
    """The ``size`` bytes that begin at each place, one behind the other."""
    places = np.ndarray((len(content) - size + 1,), f"V{size}", content, strides=(1,))
    return places[at].view(np.uint8)


def words_at(content: bytes, at: np.ndarray) -> np.ndarray:
    """The eight bytes that begin at each place, as a number."""
    return np.ndarray((len(content) - WORD + 1,), "<u8", content, strides=(1,))[at]


def joined_bytes(content: bytes, at: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The bytes of several places, ``size`` of each, one behind the other."""
    if len(size) and size[0] and (size == size[0]).all():
        return runs_at(content, at, int(size[0]))
    total = int(size.sum())
    if total > _MANY_BYTES:
        spans = zip(at.tolist(), (at + size).tolist(), strict=True)
        return np.frombuffer(b"".join([content[a:b] for a, b in spans]), np.uint8)
    places = np.repeat(at + size - np.cumsum(size), size)
    places += np.arange(total)
    return np.frombuffer(content, np.uint8)[places]


def number_of_sevens(words: np.ndarray) -> np.ndarray:
    """The numbers that eight bytes make, seven bits of each, the lowest first."""
    words = words & _SEVEN_BITS
    # Neighbours move together, then pairs, then fours.
    for step, low, high in _MOVES:
        words = (words & low) | (words >> step & high)
    return words


def numbers_in(found: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The integers in the bytes of several lists: ``before`` says how many bytes are before each.

    Gives them, how many come before each list, and the places of bytes where one begins that is
    too long.
    """
    last = found < 128
    stops = np.flatnonzero(last)
    if len(stops) == len(found):
        return found.astype(np.int64), before, stops[:0]
    starts = np.zeros_like(stops)
    starts[1:] = stops[:-1] + 1
    further = stops - starts
    digits = (found & 0x7F).astype(np.uint64)
    values = digits[starts]
    more = np.flatnonzero(further)
    for place in range(1, LONGEST_NUMBER):
        values[more] |= digits[starts[more] + place] << np.uint64(7 * place)
        more = more[further[more] > place]
        if not len(more):
            break
    ended = np.zeros(len(found) + 1, np.int64)
    np.cumsum(last, out=ended[1:])
    return values.view(np.int64), ended[before], starts[further >= LONGEST_NUMBER]
