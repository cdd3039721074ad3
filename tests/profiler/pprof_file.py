"""Reads a profile for pprof by the field numbers of the public ``profile.proto``, on its own."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value - (1 << 64) if value >= 1 << 63 else value, position


def fields(data: bytes) -> dict[int, list[Any]]:
    """The values of each field of a message: numbers, or bytes."""
    found: dict[int, list[Any]] = {}
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        value: Any
        if key & 7 == 0:
            value, position = _varint(data, position)
        elif key & 7 == 2:
            length, position = _varint(data, position)
            value = data[position : position + length]
            assert len(value) == length
            position += length
        else:
            raise AssertionError(f"profile.proto has no fields of wire type {key & 7}")
        found.setdefault(key >> 3, []).append(value)
    return found


def _numbers(values: list[Any]) -> list[int]:
    """A repeated number, packed or not."""
    found = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        position = 0
        while position < len(value):
            number, position = _varint(value, position)
            found.append(number)
    return found


@dataclass
class PprofFile:
    """What a profile says: kinds of values with their units, and samples, the leaf first."""

    kinds: list[tuple[str, str]]
    samples: list[tuple[list[tuple[str, str, int]], list[int]]]
    """For each sample its calls (function, file, line), and its values."""
    default_kind: str = ""
    labels: list[dict[str, str]] = field(default_factory=list)


def read_pprof(path: Path) -> PprofFile:
    """The profile in a file, which has to be compressed by gzip."""
    profile = fields(gzip.decompress(path.read_bytes()))
    texts = [text.decode() for text in profile[6]]
    assert texts[0] == "", "the first string of the table is the empty one"

    def text(message: dict[int, list[Any]], number: int) -> str:
        return texts[message.get(number, [0])[0]]

    functions = {f[1][0]: f for f in map(fields, profile.get(5, []))}
    locations = {where[1][0]: where for where in map(fields, profile.get(4, []))}
    assert 0 not in functions and 0 not in locations, "identities are not zero"
    calls = {}
    for number, where in locations.items():
        [line] = map(fields, where[4])
        function = functions[line[1][0]]
        calls[number] = text(function, 2), text(function, 4), line.get(2, [0])[0]
    kinds = [(text(kind, 1), text(kind, 2)) for kind in map(fields, profile[1])]
    samples, labels = [], []
    for sample in map(fields, profile.get(2, [])):
        values = _numbers(sample[2])
        assert len(values) == len(kinds), "a value for each kind"
        samples.append(([calls[number] for number in _numbers(sample[1])], values))
        labels.append({text(x, 1): text(x, 2) for x in map(fields, sample.get(3, []))})
    return PprofFile(kinds, samples, texts[profile.get(14, [0])[0]], labels)
