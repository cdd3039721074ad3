"""Sets of characters by Unicode's general categories, as ranges."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import cache

Ranges = tuple[tuple[int, int], ...]
_SURROGATES = (0xD800, 0xDFFF)
"""No characters: they stand for bytes that are no UTF-8."""


@cache
def _by_category() -> dict[str, Ranges]:
    found: dict[str, list[tuple[int, int]]] = {}
    begin, before = 0, unicodedata.category("\0")
    for code in range(1, sys.maxunicode + 2):
        now = unicodedata.category(chr(code)) if code <= sys.maxunicode else ""
        if now != before:
            found.setdefault(before, []).append((begin, code - 1))
            begin, before = code, now
    return {category: tuple(ranges) for category, ranges in found.items()}


def category_ranges(name: str) -> Ranges | None:
    """The characters of ``Lu``, of all categories that begin with ``L``, of ``Any``; or None."""
    if name == "Any":
        return without_surrogates(((0, sys.maxunicode),))
    known = _by_category()
    # RE2's C has no unassigned characters.
    names = [each for each in known if each == name or (each[0] == name and each != "Cn")]
    if not names or name == "Cn":
        return None
    return joined(part for each in names for part in known[each])


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union, in order."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if found and begin <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return tuple(found)


def complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """All other characters."""
    found, begin = [], 0
    for first, last in joined([*ranges, _SURROGATES]):
        if first > begin:
            found.append((begin, first - 1))
        begin = last + 1
    if begin <= sys.maxunicode:
        found.append((begin, sys.maxunicode))
    return tuple(found)


def without_surrogates(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """``ranges`` without what stands for bytes that are no UTF-8."""
    return complement(complement(ranges))


def in_class(ranges: Iterable[tuple[int, int]]) -> str:
    """What stands between the brackets of a class of these characters."""
    return "".join(f"\\U{begin:08x}-\\U{end:08x}" for begin, end in ranges)
