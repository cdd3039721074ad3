"""Patterns that Python's own expressions match as RE2 does, over ASCII, and many times as fast.

A call of RE2 from Python costs more than a match in a short text. Both take the leftmost match, and
prefer what stands first, so they agree wherever characters are bytes and a match is not empty. What
is left is time: Python tries one way after another. Only patterns with so few ways are taken that
the time stays in proportion to the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from runnel.ops.strings.re2_syntax import (
    Assertion,
    Captured,
    Characters,
    Choice,
    Node,
    Repeated,
    Sequence,
    SyntaxFault,
    parsed,
)

_ASSERTIONS = {"begin": rb"\A", "end": rb"\Z", "boundary": rb"\b", "no boundary": rb"\B"}
_LONGEST_PATTERN = 200
_LONGEST_MATCH = 100
"""The most characters that a match may need, which are tried at each place of a text."""
_SHORT_TEXT = 200
"""Texts so short may take time in proportion to their square."""


@dataclass(frozen=True, slots=True)
class PlainPattern:
    """A pattern as an expression of Python's, for ASCII texts up to a length."""

    expression: re.Pattern[bytes]
    longest: float

    def takes(self, text: bytes) -> bool:
        """Whether matches in ``text`` are RE2's, and take no more than their time."""
        return len(text) <= self.longest and text.isascii()

    def takes_whole(self, text: bytes) -> bool:
        """The same for a match of all of it, which may fail behind the last part, too."""
        return len(text) <= _SHORT_TEXT and text.isascii()


@lru_cache(256)
def plain_pattern(pattern: bytes) -> PlainPattern | None:
    """``pattern`` for Python; None for one that it might match in another way, or slowly.

    Example:
        >>> plain_pattern(rb"[^a-z ]+").expression.sub(b"", b"a1 b2")
        b'a b'
    """
    if len(pattern) > _LONGEST_PATTERN:
        return None
    try:
        tree, _ = parsed(pattern.decode())
        written = _Writer()
        least = written.write(tree)
    except (SyntaxFault, UnicodeDecodeError, _NotPlain):
        return None
    # Where the last part alone has several ways, the first that is tried is the match.
    before_last = written.ways - written.ends_with_ways
    if not 0 < least <= _LONGEST_MATCH or before_last > 1:
        return None
    expression = re.compile(b"".join(written.parts))
    return PlainPattern(expression, _SHORT_TEXT if before_last else float("inf"))


class _NotPlain(Exception):
    """There is a part that Python might match in another way."""


class _Writer:
    """Writes a tree in Python's syntax, and counts where a match can go on in several ways."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.ways = 0
        self.ends_with_ways = False

    def write(self, node: Node) -> int:
        """Writes ``node``; the least length of what it matches."""
        if isinstance(node, Characters):
            self.parts.append(_bytes_of(node))
            self.ends_with_ways = False
            return 1
        if isinstance(node, Sequence):
            return sum([self.write(part) for part in node.parts])
        if isinstance(node, Captured):
            self.parts.append(b"(")
            least = self.write(node.inner)
            self.parts.append(b")")
            return least
        if isinstance(node, Assertion) and node.kind in _ASSERTIONS:
            self.parts.append(_ASSERTIONS[node.kind])
            self.ends_with_ways = False
            return 0
        if isinstance(node, Repeated) and isinstance(node.inner, Characters):
            return self._write_repeated(node, node.inner)
        if isinstance(node, Choice):
            return self._write_choice(node)
        raise _NotPlain

    def _write_repeated(self, node: Repeated, inner: Characters) -> int:
        most = b"" if node.most is None else b"%d" % node.most
        lazy = b"?" if node.is_lazy else b""
        self.parts += [_bytes_of(inner), b"{%d,%b}" % (node.least, most), lazy]
        self.ends_with_ways = node.least != node.most
        self.ways += self.ends_with_ways
        return node.least

    def _write_choice(self, node: Choice) -> int:
        before, found = self.ways, []
        self.parts.append(b"(?:")
        for i, option in enumerate(node.options):
            self.parts.append(b"|" if i else b"")
            found.append(self.write(option))
        self.parts.append(b")")
        if self.ways > before:
            raise _NotPlain
        self.ways += 1
        self.ends_with_ways = True
        return min(found)


def _bytes_of(characters: Characters) -> bytes:
    """A class of the characters that are bytes."""
    ranges = [(low, min(high, 0x7F)) for low, high in characters.ranges if low <= 0x7F]
    if not ranges:
        raise _NotPlain
    return b"[%b]" % b"".join([rb"\x%02x-\x%02x" % pair for pair in ranges])
