"""Plain values as YAML: what a manifest needs, and nothing that could be read as something else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_MISREAD = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def yaml_text(value: Any) -> str:
    """A mapping or a list as a document in block style; text is always quoted."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inside in value.items():
            yield from _entry(f"{_key(key)}:", inside, "  ")
    else:
        for inside in value:
            if isinstance(inside, Mapping | list) and inside:
                first, *others = _lines(inside)
                yield f"- {first}"
                yield from (f"  {line}" for line in others)
            else:
                yield f"- {_scalar(inside)}"


def _entry(key: str, inside: Any, indent: str) -> Iterator[str]:
    if isinstance(inside, Mapping | list) and inside:
        yield key
        yield from (indent + line for line in _lines(inside))
    else:
        yield f"{key} {_scalar(inside)}"


def _key(key: str) -> str:
    plain = _PLAIN_KEY.fullmatch(key) and key.lower() not in _MISREAD
    return key if plain else _scalar(key)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return f'"{"".join(map(_character, value))}"'
    return json.dumps(value)  # JSON's numbers, words, [] and {} are YAML's


def _character(character: str) -> str:
    """A character inside of quotes; beyond 16 bits, where JSON has pairs, YAML has one number."""
    if ord(character) > 0xFFFF:
        return f"\\U{ord(character):08x}"
    return "\\x7f" if character == "\x7f" else json.dumps(character)[1:-1]
