"""Regular expressions in RE2's syntax, matched by Python's ``re``.

RE2 takes time in proportion to the text. Python's ``re`` tries one way after the other: a pattern
with a repetition inside of a repetition that can match the same text in many ways, like ``(a+)+b``,
takes time exponential in the text where it does not match, and nothing can stop it meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.shape_inference import unchanged
from runnel.ops.strings.re2_syntax import in_python
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


@lru_cache(256)
def compiled(pattern: bytes) -> Any:
    """The pattern, ready to match texts of UTF-8."""
    try:
        return re.compile(in_python(pattern.decode("utf-8", "surrogateescape")), re.ASCII)
    except (re.error, OverflowError) as error:
        raise InvalidArgumentError(
            None, None, f"Invalid pattern: {pattern[:200]!r}, error: {error}"
        ) from None


def _replaced(texts: Any, pattern: bytes, rewrite: bytes, everywhere: bool) -> np.ndarray:
    expression = compiled(pattern)
    parts = re.split(r"\\(\d|\\)", rewrite.decode("utf-8", "surrogateescape"))
    if any("\\" in part for part in parts[::2]):
        raise InvalidArgumentError(
            None,
            None,
            f"Invalid rewrite {rewrite!r}: after a backslash comes a digit or another",
        )
    groups = [int(part) for part in parts[1::2] if part != "\\"]
    if max(groups, default=0) > expression.groups:
        raise InvalidArgumentError(
            None,
            None,
            f"The rewrite {rewrite!r} names group {max(groups)}, but the pattern has "
            f"{expression.groups}",
        )

    def replacement(match: Any) -> str:
        named = [
            part if i % 2 == 0 else ("\\" if part == "\\" else match.group(int(part)) or "")
            for i, part in enumerate(parts)
        ]
        return "".join(named)

    def one(text: bytes) -> bytes:
        decoded = text.decode("utf-8", "surrogateescape")
        if everywhere:
            changed = "".join(_replaced_everywhere(expression, decoded, replacement))
        else:
            changed = expression.sub(replacement, decoded, 1)
        return changed.encode("utf-8", "surrogateescape")

    return each(one, texts)


def _replaced_everywhere(
    expression: Any, text: str, replacement: Callable[[Any], str]
) -> Iterator[str]:
    """The parts of ``text`` with each match replaced.

    As in RE2, but not in Python, an empty match right behind another is none.
    """
    place, last = 0, -1
    while place <= len(text) and (found := expression.search(text, place)) is not None:
        begin, end = found.span()
        yield text[place:begin]
        if begin == end == last:
            yield text[begin : begin + 1]
            place = begin + 1
        else:
            yield replacement(found)
            place = last = end
    yield text[place:]


def _matched(texts: Any, pattern: bytes) -> np.ndarray:
    match = compiled(pattern).fullmatch
    return each(
        lambda text: match(text.decode("utf-8", "surrogateescape")) is not None, texts, np.bool_
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

    In ``rewrite`` a backslash and a digit stand for a group of the match. The syntax is RE2's. A
    repetition of a repetition, like ``(a+)+b``, can take very long: write ``a+b``.

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
