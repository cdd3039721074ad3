"""Sets of characters, as ranges of code points: Unicode's general categories, and cases."""

from __future__ import annotations

import sys
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache

Ranges = tuple[tuple[int, int], ...]
"""Of code points, both ends included, in order and apart from each other."""


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
        return ((0, sys.maxunicode),)
    known = _by_category()
    # RE2's C has no unassigned characters.
    names = [each for each in known if each in (name, name + each[1:]) and each != "Cn"]
    return joined(part for each in names for part in known[each]) if names else None


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union, in order."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if found and begin <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    found, begin = [], 0
    for first, last in ranges:
        if first > begin:
            found.append((begin, first - 1))
        begin = last + 1
    if begin <= sys.maxunicode:
        found.append((begin, sys.maxunicode))
    return tuple(found)


def in_any_case(ranges: Ranges) -> Ranges:
    """``ranges`` and each other case of their characters, as Unicode's simple folding has it."""
    begins = [begin for begin, _ in ranges]
    more = []
    for code, cases in _cases().items():
        place = bisect_right(begins, code) - 1
        if place >= 0 and code <= ranges[place][1]:
            more += [(each, each) for each in cases]
    return joined([*ranges, *more])


@cache
def _cases() -> dict[int, list[int]]:
    """For each character that has cases: all that fold to the same as it."""
    groups: dict[str, list[int]] = {}
    for code in range(0x20000):  # there are no cases above
        one = chr(code)
        # Where a full folding has several characters, the simple one is mostly the lower case.
        folded = next((each for each in (one.casefold(), one.lower()) if len(each) == 1), one)
        groups.setdefault(folded, []).append(code)
    return {code: group for group in groups.values() if len(group) > 1 for code in group}
