"""Patterns matched in time proportional to the text, where the package google-re2 is missing.

A pattern becomes a program whose threads read the text together, byte by byte, in the order in
which a backtracking matcher would try them (Thompson's construction, with Pike's captures). The
threads at one place are a state; which state follows on which byte, and where the captures go, is
computed once and kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from runnel.ops.strings.re2_syntax import (
    AnyByte,
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
from runnel.ops.strings.unicode_sets import Ranges

LARGEST_PROGRAM = 50_000
KEPT_THREADS = 500_000
"""In the states of a pattern, together: those that are met later take the place of all."""
_END = 256
"""Read as if it were a byte, behind the last one."""
_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class _Bytes:
    """What can follow: for each byte True, at the end of a character, or what follows on it."""

    __slots__ = ("to",)

    def __init__(self) -> None:
        self.to: dict[int, _Bytes | bool] = {}


# Instructions name the next ones by their numbers in the program.
@dataclass(frozen=True, slots=True)
class _Read:
    characters: _Bytes
    then: int


@dataclass(slots=True)
class _Split:
    """Both, the first before the other."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class _Save:
    slot: int
    then: int


@dataclass(frozen=True, slots=True)
class _Assert:
    kind: str
    then: int


_MATCH = 0
"""The instruction at which a match is found, in every program."""


class _Compiler:
    """Writes a program from its end to its begin: each part is given what comes behind it."""

    def __init__(self) -> None:
        self.program: list[Any] = [None]

    def add(self, instruction: Any) -> int:
        if len(self.program) >= LARGEST_PROGRAM:
            raise SyntaxFault("pattern too large - compile failed")
        self.program.append(instruction)
        return len(self.program) - 1

    def node(self, node: Node, then: int) -> int:
        """Where the program for ``node`` begins that goes on with ``then``."""
        match node:
            case Characters(ranges):
                return self.add(_Read(_of_characters(ranges), then))
            case AnyByte():
                return self.add(_Read(_ANY_BYTE, then))
            case Assertion(kind):
                return self.add(_Assert(kind, then))
            case Captured(inner, number):
                end = self.add(_Save(2 * number + 1, then))
                return self.add(_Save(2 * number, self.node(inner, end)))
            case Sequence(parts):
                for part in reversed(parts):
                    then = self.node(part, then)
                return then
            case Choice(options):
                starts = [self.node(option, then) for option in options]
                begin = starts.pop()
                while starts:
                    begin = self.add(_Split(starts.pop(), begin))
                return begin
            case Repeated():
                return self._repetition(node, then)

    def _repetition(self, node: Repeated, then: int) -> int:
        inner, is_lazy = node.inner, node.is_lazy
        if node.most is None:
            begin = self._plus(inner, then, is_lazy)
            if node.least == 0:
                begin = self._either(begin, then, is_lazy)
        else:
            begin = then
            for _ in range(node.most - node.least):
                begin = self._either(self.node(inner, begin), then, is_lazy)
        for _ in range(node.least - (node.most is None)):
            begin = self.node(inner, begin)
        return begin

    def _either(self, begin: int, then: int, is_lazy: bool) -> int:
        return self.add(_Split(then, begin) if is_lazy else _Split(begin, then))

    def _plus(self, inner: Node, then: int, is_lazy: bool) -> int:
        loop = _Split(then, then)
        begin = self.node(inner, self.add(loop))
        if is_lazy:
            loop.second = begin
        else:
            loop.first = begin
        return begin


@dataclass(eq=False, slots=True)
class _State:
    """The threads at a place of the text, in their order."""

    before: int
    """The kind of the byte before the place."""
    threads: tuple[int | tuple[_Bytes, int], ...]
    """Instructions; inside of a character: what can follow in it, and what comes then."""
    next: dict[int, tuple[_State, tuple | None, tuple | None]] = field(default_factory=dict)
    """By the byte: the next state; for its threads the ones that they come from and what these
    save, None if all stay; the thread that has matched, if one has, and what it saves."""


_BEGIN, _NEWLINE, _WORDS, _OTHER = range(4)


def _kind(byte: int) -> int:
    return _NEWLINE if byte == 10 else _WORDS if byte in _WORD else _OTHER


class _Automaton:
    """Finds a match from a place on or, if ``is_whole``, of the whole text."""

    def __init__(self, program: list[Any], begin: int, is_whole: bool) -> None:
        self._program, self._begin, self._is_whole = program, begin, is_whole
        self._states: dict[Any, _State] = {}
        self._kept = 0

    def run(self, text: bytes, place: int, slots: int) -> list[int] | None:
        """Where each group of the match begins and ends."""
        state = self._state(_kind(text[place - 1]) if place else _BEGIN, (self._begin,))
        saved = [[-1] * slots]
        found = None
        for place in range(place, len(text) + 1):  # noqa: B020 (it goes on from there)
            byte = text[place] if place < len(text) else _END
            step = state.next.get(byte) or self._step(state, byte)
            state, moves, matched = step
            if matched is not None:
                found = _with(saved[matched[0]], matched[1], place)
            if not state.threads:
                break
            if moves is not None:
                saved = [_with(saved[thread], slots, place) for thread, slots in moves]
        return found

    def _state(self, before: int, threads: Any) -> _State:
        key = before, threads
        state = self._states.get(key)
        if state is None:
            if self._kept > KEPT_THREADS:
                self._states, self._kept = {}, 0
            state = self._states[key] = _State(before, threads)
        return state

    def _step(self, state: _State, byte: int) -> tuple[_State, tuple | None, tuple | None]:
        holds = _holding(state.before, byte)
        seen: set[int] = set()
        threads: dict[Any, tuple[int, tuple]] = {}
        matched = None
        for number, thread in enumerate(state.threads):
            for characters, then, slots in self._reading(thread, holds, seen):
                if characters is None:
                    if not self._is_whole or byte == _END:
                        matched = number, slots
                        break  # the threads behind are of less worth
                elif (follows := characters.to.get(byte)) is not None:
                    threads.setdefault(
                        then if follows is True else (follows, then), (number, slots)
                    )
            if matched is not None:
                break
        moves: tuple | None = tuple(threads.values())
        if self._is_whole or moves == tuple((i, ()) for i in range(len(state.threads))):
            moves = None
        if self._is_whole and matched is not None:
            matched = 0, ()
        step = state.next[byte] = self._state(_kind(byte), tuple(threads)), moves, matched
        self._kept += len(threads) + 1
        return step

    def _reading(
        self, thread: Any, holds: frozenset[str], seen: set[int]
    ) -> Iterator[tuple[_Bytes | None, int, tuple[int, ...]]]:
        """What a thread can read, what comes then, and what it saves before; None for a match."""
        if not isinstance(thread, int):
            yield *thread, ()
            return
        waiting: list[tuple[int, tuple[int, ...]]] = [(thread, ())]
        while waiting:
            place, slots = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            match self._program[place]:
                case _Read(characters, then):
                    yield characters, then, slots
                case _Split(first, second):
                    waiting += [(second, slots), (first, slots)]
                case _Save(slot, then):
                    waiting.append((then, (*slots, slot)))
                case _Assert(kind, then):
                    if kind in holds:
                        waiting.append((then, slots))
                case None:
                    yield None, _MATCH, slots


def _with(saved: list[int], slots: tuple[int, ...], place: int) -> list[int]:
    if slots:
        saved = saved.copy()
        for slot in slots:
            saved[slot] = place
    return saved


@lru_cache(1024)
def _holding(before: int, byte: int) -> frozenset[str]:
    """The assertions that hold between a byte of the kind ``before`` and ``byte``."""
    found = {"boundary" if (before == _WORDS) != (byte in _WORD) else "no boundary"}
    if before in (_BEGIN, _NEWLINE):
        found |= {"line begin"} if before == _NEWLINE else {"line begin", "begin"}
    if byte in (10, _END):
        found |= {"line end"} if byte == 10 else {"line end", "end"}
    return frozenset(found)


class Match:
    """Where a pattern matches a text."""

    def __init__(self, text: bytes, places: list[int]) -> None:
        self._text, self._places = text, places

    def span(self, group: int = 0) -> tuple[int, int]:
        """Where the match of a group begins and ends; -1 if it took no part."""
        return self._places[2 * group], self._places[2 * group + 1]

    def start(self) -> int:
        return self.span()[0]

    def end(self) -> int:
        return self.span()[1]

    def group(self, group: int) -> bytes | None:
        """The text of a group, if it took part."""
        begin, end = self.span(group)
        return None if begin < 0 else self._text[begin:end]


class Pattern:
    """A pattern in RE2's syntax, ready to match texts of UTF-8; it is what ``re2.compile`` gives.

    Example:
        >>> Pattern(b"a(b*)").search(b"cabb").group(1)
        b'bb'
    """

    def __init__(self, pattern: bytes) -> None:
        try:
            tree, self.groups = parsed(pattern.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            raise SyntaxFault("invalid UTF-8") from None
        compiler = _Compiler()
        begin = compiler.node(Captured(tree, 0), _MATCH)
        loop = _Split(begin, begin)  # else the search goes on behind the next byte
        search = compiler.add(loop)
        loop.second = compiler.add(_Read(_ANY_BYTE, search))
        self._searching = _Automaton(compiler.program, search, is_whole=False)
        self._whole = _Automaton(compiler.program, begin, is_whole=True)

    def search(self, text: bytes, place: int = 0) -> Match | None:
        """The first match that begins at ``place`` or behind it."""
        found = self._searching.run(text, place, 2 * self.groups + 2)
        return None if found is None else Match(text, found)

    def fullmatch(self, text: bytes) -> bool | None:
        """True if the whole text matches."""
        return True if self._whole.run(text, 0, 0) is not None else None


@lru_cache(256)
def compiled(pattern: bytes) -> Pattern:
    """``Pattern(pattern)``, kept."""
    return Pattern(pattern)


@lru_cache(256)
def _of_characters(ranges: Ranges) -> _Bytes:
    found = _Bytes()
    for low, high in ranges:
        for sequence in _utf8(low, high):
            place = found
            for first, last in sequence[:-1]:
                inner = place.to.get(first) if first == last else None
                if not isinstance(inner, _Bytes):
                    inner = _Bytes()
                    place.to.update(dict.fromkeys(range(first, last + 1), inner))
                place = inner
            first, last = sequence[-1]
            place.to.update(dict.fromkeys(range(first, last + 1), True))
    return found


_ANY_BYTE = _Bytes()
_ANY_BYTE.to.update(dict.fromkeys(range(256), True))
_MORE = (0x80, 0xBF)
# RE2 lets all of these pass, overlong ones too, where any character does that is not ASCII.
_NOT_ASCII = [
    [(0xC2, 0xDF), _MORE],
    [(0xE0, 0xEF), _MORE, _MORE],
    [(0xF0, 0xF4), _MORE, _MORE, _MORE],
]


def _utf8(low: int, high: int) -> Iterator[list[tuple[int, int]]]:
    """UTF-8 of the characters from ``low`` to ``high``: for each byte its range, in sequences."""
    if (low, high) == (0x80, 0x10FFFF):
        yield from _NOT_ASCII
        return
    for limit in (0x7F, 0x7FF, 0xFFFF):
        if low <= limit < high:
            yield from _utf8(low, limit)
            yield from _utf8(limit + 1, high)
            return
    if high > 0x7F:
        for bits in (0x3F, 0xFFF, 0x3FFFF):  # of the last byte, the last two, three
            if low | bits != high | bits:
                if low & bits:
                    yield from _utf8(low, low | bits)
                    yield from _utf8((low | bits) + 1, high)
                    return
                if high & bits != bits:
                    yield from _utf8(low, (high & ~bits) - 1)
                    yield from _utf8(high & ~bits, high)
                    return
    first, last = (chr(each).encode("utf-8", "surrogatepass") for each in (low, high))
    yield list(zip(first, last, strict=True))
