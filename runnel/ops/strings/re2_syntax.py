"""RE2's syntax for patterns, read into a tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import category

from runnel.ops.strings.unicode_scripts import characters_of_script
from runnel.ops.strings.unicode_sets import (
    Ranges,
    category_ranges,
    complement,
    in_any_case,
    joined,
)

LARGEST_REPETITION = 1000
DEEPEST_NESTING = 200

_DIGIT: Ranges = ((0x30, 0x39),)
_UPPER: Ranges = ((0x41, 0x5A),)
_LOWER: Ranges = ((0x61, 0x7A),)
_WORD: Ranges = (*_DIGIT, *_UPPER, (0x5F, 0x5F), *_LOWER)
_NAMED: dict[str, Ranges] = {
    "alnum": (*_DIGIT, *_UPPER, *_LOWER),
    "alpha": (*_UPPER, *_LOWER),
    "ascii": ((0x00, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": _LOWER,
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": (*_DIGIT, (0x41, 0x46), (0x61, 0x66)),
}
_PERL: dict[str, Ranges] = {
    "d": _DIGIT,
    "s": ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)),
    "w": _WORD,
}
_CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_ASSERTIONS = {"A": "begin", "z": "end", "b": "boundary", "B": "no boundary"}

_FLAGS = re.compile(r"\(\?(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)])")
_NO_FLAGS = re.compile(r"\(\?[imsU]*(?:-[imsU]*)?(?:<[=!]|.)?", re.DOTALL)
_NAME = re.compile(r"\(\?(?:P<|<(?![=!].))(?P<name>[^>]*)(?P<end>>?)", re.DOTALL)
_IN_NAMES = frozenset("Lu Ll Lt Lm Lo Nl Mn Mc Nd Pc".split())  # noqa: SIM905 (easier to read)
_NUMBER = r"0|[1-9]\d*"  # with zeros before it, it is text
_REPEAT = re.compile(
    rf"(?P<mark>[*+?])|\{{(?P<least>{_NUMBER})(?P<range>,(?P<most>{_NUMBER})?)?\}}", re.ASCII
)
_HEX = re.compile(r"\\x(?:\{(?P<long>[0-9A-Fa-f]+)\}|(?P<short>[0-9A-Fa-f]{2}))")
_NO_HEX = re.compile(r"\\x\{?[0-9A-Fa-f]*")
_OCTAL = re.compile(r"\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})")


class SyntaxFault(ValueError):
    """A pattern that RE2 refuses, and its reason."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of these."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class AnyByte:
    """One byte, also one of several of a character."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """A place, and no text: one of ``_ASSERTIONS``, or the begin or end of a line."""

    kind: str


@dataclass(frozen=True, slots=True)
class Captured:
    """What matches is the match's group of this number."""

    inner: Node
    number: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these, the first before the others."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """``least`` times to ``most`` times, None for any number; as few as possible if lazy."""

    inner: Node
    least: int
    most: int | None
    is_lazy: bool


Node = Characters | AnyByte | Assertion | Captured | Sequence | Choice | Repeated


def parsed(pattern: str) -> tuple[Node, int]:
    """The tree of a pattern and the number of its groups; ``SyntaxFault`` for what RE2 refuses."""
    return _Parser(pattern).run()


@dataclass(slots=True)
class _Open:
    """A group, or the whole, whose end is not reached."""

    flags: frozenset[str]
    """Of what is around it."""
    number: int | None
    options: list[Node]
    parts: list[Node]

    def tree(self) -> Node:
        options = [*self.options, Sequence(tuple(self.parts))]
        inner = options[0] if len(options) == 1 else Choice(tuple(options))
        return inner if self.number is None else Captured(inner, self.number)


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._flags: frozenset[str] = frozenset()
        self._groups = 0
        self._open = [_Open(self._flags, None, [], [])]
        self._repetition = (-1, -1)
        """From where to where the last repetition is written."""

    def run(self) -> tuple[Node, int]:
        while self._place < len(self._pattern):
            self._next()
        if len(self._open) > 1:
            raise SyntaxFault(f"missing ): {self._pattern}")
        return self._open[0].tree(), self._groups

    def _starts(self, text: str) -> bool:
        return self._pattern.startswith(text, self._place)

    def _put(self, node: Node, length: int = 0) -> None:
        self._open[-1].parts.append(node)
        self._place += length

    def _put_ranges(self, ranges: Ranges, is_negated: bool = False) -> None:
        self._put(Characters(self._in_case(ranges, is_negated)))

    def _in_case(self, ranges: Ranges, is_negated: bool = False) -> Ranges:
        ranges = in_any_case(ranges) if "i" in self._flags else ranges
        return complement(ranges) if is_negated else ranges

    def _next(self) -> None:
        mark = self._pattern[self._place]
        if self._starts("\\Q"):
            text, _, _ = self._pattern[self._place + 2 :].partition("\\E")
            for each in text:
                self._put_ranges(((ord(each), ord(each)),))
            self._place = min(self._place + len(text) + 4, len(self._pattern))
        elif mark == "\\":
            self._escape()
        elif mark == "[":
            self._class()
        elif mark == "(":
            self._begin_group()
        elif mark == ")":
            if len(self._open) == 1:
                raise SyntaxFault(f"unexpected ): {self._pattern}")
            group = self._open.pop()
            self._flags = group.flags
            self._put(group.tree(), 1)
        elif mark == "|":
            group = self._open[-1]
            group.options.append(Sequence(tuple(group.parts)))
            group.parts = []
            self._place += 1
        elif mark == "^":
            self._put(Assertion("line begin" if "m" in self._flags else "begin"), 1)
        elif mark == "$":
            self._put(Assertion("line end" if "m" in self._flags else "end"), 1)
        elif mark == ".":
            self._put(Characters(complement(() if "s" in self._flags else ((10, 10),))), 1)
        elif found := _REPEAT.match(self._pattern, self._place):
            self._repeat(found)
        else:  # a brace that begins no repetition stands for itself
            self._place += 1
            self._put_ranges(((ord(mark), ord(mark)),))

    def _repeat(self, found: re.Match[str]) -> None:
        parts = self._open[-1].parts
        begin, self._place = found.span()
        is_lazy = self._starts("?")
        self._place += is_lazy
        shown = self._pattern[begin : self._place]
        last, self._repetition = self._repetition, (begin, self._place)
        if last[1] == begin:
            raise SyntaxFault(f"bad repetition operator: {self._pattern[last[0] : begin]}{shown}")
        least, most = _numbers(found)
        if max(least, most or 0) > LARGEST_REPETITION or (most is not None and most < least):
            raise SyntaxFault(f"invalid repetition size: {shown}")
        if not parts:
            raise SyntaxFault(f"no argument for repetition operator: {shown}")
        node = Repeated(parts.pop(), least, most, is_lazy != ("U" in self._flags))
        if _times(node) > LARGEST_REPETITION:
            raise SyntaxFault(f"invalid repetition size: {shown}")
        parts.append(node)

    def _begin_group(self) -> None:
        number, flags, length = None, self._flags, 1
        if not self._starts("(?"):
            number = self._groups = self._groups + 1
        elif found := _NAME.match(self._pattern, self._place):
            if not (
                found["end"]
                and found["name"]
                and _IN_NAMES.issuperset(map(category, found["name"]))
            ):
                raise SyntaxFault(f"invalid named capture group: {found.group()}")
            number = self._groups = self._groups + 1
            length = len(found.group())
        elif found := _FLAGS.match(self._pattern, self._place):
            flags = (flags | set(found["on"])) - set(found["off"] or "")
            length = len(found.group())
            if found["end"] == ")":  # from here to the end of the group around it
                self._flags = flags
                self._place += length
                return
        else:
            found = _NO_FLAGS.match(self._pattern, self._place)
            raise SyntaxFault(f"invalid perl operator: {found.group() if found else ''}")
        if len(self._open) > DEEPEST_NESTING:
            raise SyntaxFault(f"groups nest too deeply, more than {DEEPEST_NESTING} of them")
        self._open.append(_Open(self._flags, number, [], []))
        self._flags = flags
        self._place += length

    def _escape(self) -> None:
        kind = self._pattern[self._place + 1 : self._place + 2]
        if kind == "C":
            self._put(AnyByte(), 2)
        elif kind in _ASSERTIONS:
            self._put(Assertion(_ASSERTIONS[kind]), 2)
        elif (found := self._set()) is not None:
            self._put(Characters(found))
        else:
            code = self._character()
            self._put_ranges(((code, code),))

    def _set(self) -> Ranges | None:
        """The class that stands here as an escape, which is passed over; None for others."""
        kind = self._pattern[self._place + 1 : self._place + 2]
        if kind and kind.lower() in _PERL:
            self._place += 2
            return self._in_case(_PERL[kind.lower()], kind.isupper())
        if kind not in ("p", "P") or not kind:
            return None
        begin, end = self._place, self._place + 3
        if self._pattern[begin + 2 : end] == "{":
            end = (self._pattern.find("}", begin) + 1) or len(self._pattern)
        shown = self._pattern[begin:end]
        is_closed = shown[2:3] != "{" or shown[-1] == "}"
        name = shown[2:].removeprefix("{").removesuffix("}") if is_closed else ""
        found = _named_set(name.removeprefix("^"))
        if found is None:
            raise SyntaxFault(f"invalid character class range: {shown}")
        self._place = end
        return self._in_case(found, (kind == "P") != name.startswith("^"))

    def _character(self) -> int:
        """The character that stands here, by itself or as an escape; it is passed over."""
        if not self._starts("\\"):
            self._place += 1
            return ord(self._pattern[self._place - 1])
        two = self._pattern[self._place : self._place + 2]
        code, length = -1, 2
        if found := _HEX.match(self._pattern, self._place):
            code, length = int(found["long"] or found["short"], 16), len(found.group())
        elif found := _OCTAL.match(self._pattern, self._place):
            code, length = int(found.group()[1:], 8), len(found.group())
        elif len(two) < 2:
            raise SyntaxFault("trailing \\")
        elif two[1] in _CONTROLS:
            code = _CONTROLS[two[1]]
        elif two[1].isascii() and not two[1].isalnum():
            code = ord(two[1])
        if not 0 <= code <= 0x10FFFF:
            shown = _NO_HEX.match(self._pattern, self._place)
            raise SyntaxFault(f"invalid escape sequence: {shown.group() if shown else two}")
        self._place += length
        return code

    def _class(self) -> None:
        begin = self._place
        self._place += 1
        is_negated = self._starts("^")
        self._place += is_negated
        ranges: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self._starts("]"):
            if self._place >= len(self._pattern):
                raise SyntaxFault(f"missing ]: {self._pattern[begin:]}")
            ranges += self._member(begin)
            is_first = False
        self._place += 1
        found = joined(ranges)
        self._put(Characters(complement(found) if is_negated else found))

    def _member(self, beginning: int) -> Ranges:
        if self._starts("[:") and (end := self._pattern.find(":]", self._place + 2)) >= 0:
            name = self._pattern[self._place + 2 : end]
            ranges = _NAMED.get(name.removeprefix("^"))
            if ranges is None:
                raise SyntaxFault(f"invalid character class range: [:{name}:]")
            self._place = end + 2
            return self._in_case(ranges, name.startswith("^"))
        if self._starts("\\") and (found := self._set()) is not None:
            return found
        begin = self._place
        low = high = self._character()
        if self._starts("-") and not self._starts("-]"):
            self._place += 1
            if self._place >= len(self._pattern):
                raise SyntaxFault(f"missing ]: {self._pattern[beginning:]}")
            high = self._character()
        if high < low:
            shown = self._pattern[begin : self._place]
            raise SyntaxFault(f"invalid character class range: {shown}")
        return self._in_case(((low, high),))


def _named_set(name: str) -> Ranges | None:
    """The characters of a general category or a script."""
    if not name:
        return None
    script = characters_of_script(name)
    return category_ranges(name) if script is None else joined(script)


def _numbers(found: re.Match[str]) -> tuple[int, int | None]:
    """The least and the most times that a repetition asks for."""
    if found["mark"]:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[found["mark"]]
    # More digits than are read say no more than these.
    least = int(found["least"][:5]) if len(found["least"]) <= 5 else LARGEST_REPETITION + 1
    if found["range"] is None:
        return least, least
    if not found["most"]:
        return least, None
    return least, int(found["most"]) if len(found["most"]) <= 5 else LARGEST_REPETITION + 1


def _times(node: Node) -> int:
    """How many copies of its innermost part a node has, when repetitions are written out."""
    if isinstance(node, Repeated):
        most = node.least if node.most is None else node.most
        return max(node.least, most, 1) * _times(node.inner)
    if isinstance(node, Captured):
        return _times(node.inner)
    if isinstance(node, Sequence | Choice):
        inner = node.parts if isinstance(node, Sequence) else node.options
        return max(map(_times, inner), default=1)
    return 1
