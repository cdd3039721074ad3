"""Strings that a regular expression matches; graphs of TensorFlow's sharded savers have these."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError
from runnel.graph.registry import register_op
from runnel.graph.shape_inference import unchanged

regex_full_match_op = register_op(
    "RegexFullMatch",
    inputs="input: string, pattern: string",
    outputs="output: bool",
    host=True,
    differentiable=False,
)
static_regex_full_match_op = register_op(
    "StaticRegexFullMatch",
    inputs="input: string",
    outputs="output: bool",
    attrs="pattern: string",
    host=True,
    differentiable=False,
)


@regex_full_match_op.shape
def _(text, pattern):
    return text.dims


static_regex_full_match_op.shape(unchanged)


@regex_full_match_op.kernel
def _(xp, text, pattern):
    return _matches(text, np.asarray(pattern, object).item())


@static_regex_full_match_op.kernel
def _(xp, text, *, pattern):
    return _matches(text, pattern)


def _matches(text: Any, pattern: str | bytes) -> np.ndarray:
    """Where the whole of a string matches; Python's syntax, which is nearly TensorFlow's."""
    try:
        compiled = re.compile(pattern.encode() if isinstance(pattern, str) else pattern)
    except re.error as error:
        raise InvalidArgumentError(None, None, f"Invalid pattern: {pattern!r}: {error}") from None
    texts = np.asarray(text, object)
    found = np.empty(texts.shape, np.bool_)
    for place in np.ndindex(texts.shape):
        one: Any = texts[place]
        found[place] = compiled.fullmatch(one.encode() if isinstance(one, str) else one) is not None
    return found
