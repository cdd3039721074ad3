"""Regular expressions, matched as TensorFlow does it: in time proportional to the text.

RE2 itself matches them where the package google-re2 is installed, which not every Python and
platform has wheels of. Elsewhere ``linear_matching.py`` does the same, in Python and more slowly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.shape_inference import unchanged
from runnel.ops.strings.plain_patterns import plain_pattern
from runnel.ops.strings.re2_syntax import SyntaxFault
from runnel.ops.strings.texts import each, encoded, string_op

replace_op = string_op(
    "RegexReplace",
    "input: string, pattern: string, rewrite: string",
    "output: string",
    "replace_global: bool = true",
)
static_replace_op = string_op(
    "StaticRegexReplace",
    "input: string",
    "output: string",
    ["pattern: string", "rewrite: string", "replace_global: bool = true"],
)
full_match_op = string_op("RegexFullMatch", "input: string, pattern: string", "output: bool")
static_full_match_op = string_op(
    "StaticRegexFullMatch", "input: string", "output: bool", "pattern: string"
)
for _op in (replace_op, static_replace_op, full_match_op, static_full_match_op):
    _op.shape(unchanged)


@cache
def _engine() -> tuple[Callable[[bytes], Any], type[Exception]]:
    """How a pattern is compiled, and what is raised for one that cannot be."""
    try:
        import re2
    except ImportError:
        from runnel.ops.strings import linear_matching

        return linear_matching.compiled, SyntaxFault
    options = re2.Options()
    options.log_errors = False  # they are raised
    return lambda pattern: re2.compile(pattern, options), re2.error


_compiled = lru_cache(256)(lambda compile_pattern, pattern: compile_pattern(pattern))


def compiled(pattern: bytes) -> Any:
    """The pattern, ready to match texts of UTF-8."""
    compile_pattern, refusal = _engine()
    try:
        return _compiled(compile_pattern, pattern)
    except refusal as error:
        (reason,) = error.args
        raise InvalidArgumentError(
            None,
            None,
            f"Invalid pattern: {_shown(pattern[:200])}, error: {_shown(reason)}. The syntax is "
            "RE2's: it has no back references and cannot look ahead or behind",
        ) from None


def _shown(text: bytes | str) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "backslashreplace")


class _Rewrite:
    r"""What a match is replaced by: text in which ``\0`` to ``\9`` stand for groups."""

    def __init__(self, rewrite: bytes, expression: Any) -> None:
        parts = re.split(rb"\\([\d\\])", rewrite)
        if any(b"\\" in part for part in parts[::2]):
            raise InvalidArgumentError(
                None,
                None,
                f"Invalid rewrite {rewrite!r}: after a backslash comes a digit or another",
            )
        self._parts: list[bytes | int] = [
            int(part) if i % 2 and part != b"\\" else part for i, part in enumerate(parts)
        ]
        largest = max((part for part in self._parts if isinstance(part, int)), default=0)
        if largest > expression.groups:
            raise InvalidArgumentError(
                None,
                None,
                f"The rewrite {rewrite!r} names group {largest}, but the pattern has "
                f"{expression.groups}",
            )

    def of_plain(self) -> Callable[[re.Match[bytes]], bytes] | bytes:
        """The same for Python's expressions: a function, or what each match is replaced by."""
        parts, numbers = self._parts, [part for part in self._parts if isinstance(part, int)]
        if not numbers:
            text = b"".join(part for part in parts if isinstance(part, bytes))
            # Python looks for groups in texts with a backslash.
            return self.of if b"\\" in text else text
        form = b"".join(b"%b" if isinstance(p, int) else p.replace(b"%", b"%%") for p in parts)

        def replaced(match: re.Match[bytes]) -> bytes:
            try:
                return form % match.group(*numbers)
            except TypeError:  # a group is not in this match
                return self.of(match)

        return replaced

    def of(self, match: Any) -> bytes:
        return b"".join(
            (match.group(part) or b"") if isinstance(part, int) else part for part in self._parts
        )


def _replaced(texts: Any, pattern: bytes, rewrite: bytes, everywhere: bool) -> np.ndarray:
    expression = compiled(pattern)
    replacement = _Rewrite(rewrite, expression)

    def first(text: bytes) -> bytes:
        match = expression.search(text)
        if match is None:
            return text
        return text[: match.start()] + replacement.of(match) + text[match.end() :]

    def every(text: bytes) -> bytes:
        return b"".join(_replaced_everywhere(expression, text, replacement))

    general = every if everywhere else first
    plain = plain_pattern(pattern)
    if plain is None:
        return each(general, texts)
    replace, takes, most = plain.expression.sub, plain.takes, 0 if everywhere else 1
    instead = replacement.of_plain()
    return each(lambda text: replace(instead, text, most) if takes(text) else general(text), texts)


def _replaced_everywhere(expression: Any, text: bytes, replacement: _Rewrite) -> Iterator[bytes]:
    """The parts of ``text`` with each match replaced.

    As RE2 has it, and neither Python nor ``re2.sub``: an empty match right behind another is
    none, and the search goes on behind the next character, not the next byte.
    """
    place, last = 0, -1
    while place <= len(text) and (found := expression.search(text, place)) is not None:
        begin, end = found.span()
        yield text[place:begin]
        place = end
        if begin == end == last:
            place += _character_length(text, begin)
            yield text[begin:place]
            place = max(place, begin + 1)
        else:
            yield replacement.of(found)
            last = end
    yield text[place:]


def _character_length(text: bytes, place: int) -> int:
    """How many bytes the character at ``place`` has: 1 where it is not UTF-8, 0 at the end."""
    for length in range(1, 5):
        try:
            text[place : place + length].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            continue
        return min(length, len(text) - place)
    return 1


def _matched(texts: Any, pattern: bytes) -> np.ndarray:
    match = compiled(pattern).fullmatch
    plain = plain_pattern(pattern)
    if plain is None:
        return each(lambda text: match(text) is not None, texts, np.bool_)
    quick, takes = plain.expression.fullmatch, plain.takes_whole
    return each(
        lambda text: (quick(text) if takes(text) else match(text)) is not None, texts, np.bool_
    )


@replace_op.kernel
def _(xp, texts, pattern, rewrite, *, replace_global):
    return _replaced(texts, np.asarray(pattern).item(), np.asarray(rewrite).item(), replace_global)


@static_replace_op.kernel
def _(xp, texts, *, pattern, rewrite, replace_global):
    return _replaced(texts, encoded(pattern), encoded(rewrite), replace_global)


@full_match_op.kernel
def _(xp, texts, pattern):
    return _matched(texts, np.asarray(pattern).item())


@static_full_match_op.kernel
def _(xp, texts, *, pattern):
    return _matched(texts, encoded(pattern))


def regex_replace(
    input: Any,  # noqa: A002 (TensorFlow's name)
    pattern: Any,
    rewrite: Any,
    replace_global: bool = True,
    name: str | None = None,
) -> Tensor:
    """Strings with each match of ``pattern``, or the first, replaced by ``rewrite``.

    In ``rewrite`` a backslash and a digit stand for a group of the match; TensorFlow leaves texts
    as they are where there is no such group, this raises an ``InvalidArgumentError``. The syntax
    is RE2's.

    Example:
        >>> tf.strings.regex_replace("a-b-c", "-", "+")  # "a+b+c"
    """
    if isinstance(pattern, str | bytes) and isinstance(rewrite, str | bytes):
        return static_replace_op(
            input, pattern=pattern, rewrite=rewrite, replace_global=replace_global, name=name
        )
    return replace_op(input, pattern, rewrite, replace_global=replace_global, name=name)


def regex_full_match(
    input: Any,  # noqa: A002 (TensorFlow's name)
    pattern: Any,
    name: str | None = None,
) -> Tensor:
    """Whether ``pattern`` matches the whole of each string.

    Example:
        >>> tf.strings.regex_full_match(["TF lib", "lib TF"], ".*lib$")  # [True, False]
    """
    if isinstance(pattern, str | bytes):
        return static_full_match_op(input, pattern=pattern, name=name)
    return full_match_op(input, pattern, name=name)
