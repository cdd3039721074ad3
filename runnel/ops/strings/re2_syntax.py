"""Patterns in the syntax of RE2, written in that of Python's ``re``.

The two agree on most. RE2 has classes by names and by Unicode's categories, ``\\Q...\\E``, flags in
the middle of a pattern; its ``$`` is the very end; it has no backreferences, no looking around and
no possessive repetition, which are refused here as there.
"""

from __future__ import annotations

import re

from runnel.ops.strings.unicode_sets import Ranges, category_ranges, complement, in_class

_DIGIT: Ranges = ((0x30, 0x39),)
_UPPER: Ranges = ((0x41, 0x5A),)
_LOWER: Ranges = ((0x61, 0x7A),)
_BLANKS: Ranges = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))
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
_PERL = {"d": _DIGIT, "s": _BLANKS, "w": _WORD}
_GROUP = re.compile(r"\(\?(?P<flags>[imsU]*(?:-[imsU]+)?)(?P<end>[:)])")
_NAME = re.compile(r"\(\?P?<(?P<name>\w+)>")
_REPEAT = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})")
_HEX = re.compile(r"\\x(?:\{(?P<long>[0-9A-Fa-f]+)\}|(?P<short>[0-9A-Fa-f]{2}))")
_OCTAL = re.compile(r"\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})")


def in_python(pattern: str) -> str:
    """A pattern of RE2 in the syntax of ``re``; ``re.error`` for what RE2 refuses."""
    return _Translation(pattern).run()


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._out: list[str] = []
        self._open: list[tuple[list[str], bool, bool]] = []
        """For each open group: what flags had opened in the one around it, and flags there."""
        self._inner: list[str] = []
        """The groups that flags have opened in this one: Python's have to end where they began."""
        self._multiline = self._ungreedy = False

    def run(self) -> str:
        while self._place < len(self._pattern):
            self._next()
        if self._open:
            raise re.error("missing closing )")
        return "".join(self._out) + ")" * len(self._inner)

    def _starts(self, text: str) -> bool:
        return self._pattern.startswith(text, self._place)

    def _next(self) -> None:
        mark = self._pattern[self._place]
        if self._starts("\\Q"):
            end = self._pattern.find("\\E", self._place)
            end = len(self._pattern) if end < 0 else end
            self._put(re.escape(self._pattern[self._place + 2 : end]), end + 2 - self._place)
        elif mark == "\\":
            self._escape()
        elif mark == "[":
            self._class()
        elif mark == "(":
            self._group()
        elif mark == ")":
            if not self._open:
                raise re.error("unexpected )")
            self._put(")" * (len(self._inner) + 1), 1)
            self._inner, self._multiline, self._ungreedy = self._open.pop()
        elif mark == "|":
            # Flags hold for the alternatives that follow, too, but do not join them.
            self._put(")" * len(self._inner) + "|" + "".join(self._inner), 1)
        elif mark == "$":
            self._put("(?=\\n|\\Z)" if self._multiline else "\\Z", 1)
        elif found := _REPEAT.match(self._pattern, self._place):
            self._repeat(found.group())
        elif mark == "{":
            self._put("\\{", 1)  # no repetition: it stands for itself
        else:
            self._put(mark, 1)

    def _put(self, text: str, length: int) -> None:
        self._out.append(text)
        self._place += length

    def _repeat(self, how: str) -> None:
        self._put(how, len(how))
        lazy = self._starts("?")
        self._place += lazy
        if lazy != self._ungreedy:
            self._out.append("?")
        if behind := _REPEAT.match(self._pattern, self._place):
            raise re.error(f"bad repetition operator: {how}{behind.group()}")

    def _group(self) -> None:
        if not self._starts("(?"):
            self._begin("(", 1)
        elif found := _NAME.match(self._pattern, self._place):
            self._begin(f"(?P<{found['name']}>", len(found.group()))
        elif found := _GROUP.match(self._pattern, self._place):
            flags = found["flags"]
            if not flags and found["end"] == ")":
                raise re.error("missing argument to repetition operator: ?")
            if found["end"] == ":":
                self._begin(self._flagged(flags), len(found.group()), flags)
            else:  # from here to the end of the group around it
                self._set(flags)
                self._inner.append(self._flagged(flags))
                self._put(self._flagged(flags), len(found.group()))
        else:
            shown = self._pattern[self._place : self._place + 4]
            raise re.error(f"invalid perl operator: {shown}")

    def _begin(self, text: str, length: int, flags: str = "") -> None:
        self._open.append((self._inner, self._multiline, self._ungreedy))
        self._inner = []
        self._set(flags)
        self._put(text, length)

    @staticmethod
    def _flagged(flags: str) -> str:
        """A group of Python's with these flags; ``U`` and ``m`` are what this class sees to."""
        on, _, off = flags.replace("U", "").partition("-")
        return f"(?{on}-{off}:" if off else f"(?{on}:"

    def _set(self, flags: str) -> None:
        on, _, off = flags.partition("-")
        self._multiline = "m" in on or (self._multiline and "m" not in off)
        self._ungreedy = "U" in on or (self._ungreedy and "U" not in off)

    def _escape(self) -> None:
        two = self._pattern[self._place : self._place + 2]
        if two == "\\z":
            self._put("\\Z", 2)
        elif two == "\\E":
            self._place += 2
        elif two == "\\C":
            raise re.error("\\C, a single byte, is not available: patterns match characters")
        elif two in ("\\A", "\\b", "\\B"):
            self._put(two, 2)
        elif (found := self._set_of()) is not None:
            self._out.append(f"[{in_class(found)}]")
        else:
            self._out.append(self._character())

    def _set_of(self) -> Ranges | None:
        """The class that stands here as an escape, which is passed over; None for others."""
        kind = self._pattern[self._place + 1 : self._place + 2]
        if kind.lower() in _PERL and kind:
            self._place += 2
            ranges = _PERL[kind.lower()]
            return complement(ranges) if kind.isupper() else ranges
        if kind not in ("p", "P"):
            return None
        begin = self._place + 2
        end = begin + 1
        name = self._pattern[begin:end]
        if name == "{":
            end = self._pattern.find("}", begin) + 1
            name = self._pattern[begin + 1 : end - 1]
        is_negated = (kind == "P") != name.startswith("^")
        found = category_ranges(name.removeprefix("^"))
        if not name or end <= 0 or found is None:
            raise re.error(
                f"invalid character class range: \\{kind}{{{name}}} (general categories like Lu "
                "and L are there, scripts are not)"
            )
        self._place = end
        return complement(found) if is_negated else found

    def _character(self) -> str:
        """The single character that stands here as an escape, which is passed over."""
        if found := _HEX.match(self._pattern, self._place):
            code = int(found["long"] or found["short"], 16)
            if code > 0x10FFFF:
                raise re.error(f"invalid escape sequence: {found.group()}")
            self._place = found.end()
            return f"\\U{code:08x}"
        if found := _OCTAL.match(self._pattern, self._place):
            self._place = found.end()
            return f"\\U{int(found.group()[1:], 8):08x}"
        two = self._pattern[self._place : self._place + 2]
        if len(two) < 2:
            raise re.error("trailing \\")
        if two[1].isascii() and (two[1].isalnum() and two[1] not in "aftnrv"):
            raise re.error(f"invalid escape sequence: {two}")
        self._place += 2
        return two if two[1] in "aftnrv" else re.escape(two[1])

    def _class(self) -> None:
        begin = self._place
        self._place += 1
        negated = self._starts("^")
        self._place += negated
        parts: list[str] = []
        is_first = True
        while is_first or not self._starts("]"):
            if self._place >= len(self._pattern):
                raise re.error(f"missing ]: {self._pattern[begin:]}")
            parts.append(self._member())
            is_first = False
        self._place += 1
        self._out.append(f"[{'^' if negated else ''}{''.join(parts)}]")

    def _member(self) -> str:
        if self._starts("[:") and (end := self._pattern.find(":]", self._place)) > 0:
            name = self._pattern[self._place + 2 : end]
            ranges = _NAMED.get(name.removeprefix("^"))
            if ranges is None:
                raise re.error(f"invalid character class range: [:{name}:]")
            self._place = end + 2
            return in_class(complement(ranges) if name.startswith("^") else ranges)
        if self._starts("\\"):
            found = self._set_of()
            return in_class(found) if found is not None else self._character()
        mark = self._pattern[self._place]
        self._place += 1
        # These could begin what Python means to give a meaning in classes some day.
        return f"\\{mark}" if mark in "[]&|~^" else mark
