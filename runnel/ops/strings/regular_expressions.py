"""Regular expressions in RE2's syntax, matched by Python's ``re``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Tensor
from runnel.graph.shape_inference import unchanged
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

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


def _in_python(pattern: str) -> str:
    """A pattern of RE2 in the syntax of ``re``."""
    out: list[str] = []
    place, in_class = 0, False
    while place < len(pattern):
        two = pattern[place : place + 2]
        if two == "\\Q" and not in_class:
            end = pattern.find("\\E", place)
            end = len(pattern) if end < 0 else end
            out.append(re.escape(pattern[place + 2 : end]))
            place = end + 2
        elif two == "\\z" and not in_class:
            out.append("\\Z")
            place += 2
        elif two[:1] == "\\":
            out.append(two)
            place += 2
        elif in_class and two == "[:" and (end := pattern.find(":]", place)) > 0:
            name = pattern[place + 2 : end]
            if name not in _CLASSES:
                raise re.error(f"there is no class [:{name}:] (negated ones are not available)")
            out.append(_CLASSES[name])
            place = end + 2
        else:
            mark = pattern[place]
            if mark == "[" and not in_class:
                in_class = True
                out.append("[")
                place += 1
                if pattern[place : place + 1] == "^":
                    out.append("^")
                    place += 1
                if pattern[place : place + 1] == "]":  # first in a class it stands for itself
                    out.append("\\]")
                    place += 1
                continue
            if mark == "[":
                mark = "\\["
            in_class = in_class and mark != "]"
            # RE2's $ is the very end; Python's also matches before a last newline.
            out.append("\\Z" if mark == "$" and not in_class else mark)
            place += 1
    return "".join(out)


@lru_cache(256)
def compiled(pattern: bytes) -> Any:
    """The pattern, ready to match texts of UTF-8."""
    try:
        return re.compile(_in_python(pattern.decode("utf-8", "surrogateescape")), re.ASCII)
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
        changed = expression.sub(
            replacement, text.decode("utf-8", "surrogateescape"), 0 if everywhere else 1
        )
        return changed.encode("utf-8", "surrogateescape")

    return each(one, texts)


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

    In ``rewrite`` a backslash and a digit stand for a group of the match.

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
