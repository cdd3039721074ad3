"""A profile as a file for pprof: a sample for each operation, with the calls that made it.

The messages are those of the public ``profile.proto``; functions, kinds of values and the label of
a sample are called what TensorFlow's profiler calls them.
"""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

from runnel.checkpoint.whole_file import write_whole
from runnel.graph.graph import Graph
from runnel.graph.message_types import INT64, MESSAGE, STRING, MessageTypes, many, one
from runnel.profiler.counts import COUNT_OF, count, is_shown, matches_any, message
from runnel.profiler.measured import Measured

# profile.proto has unsigned identities, which look the same as signed ones below 2**63.
_TYPES = MessageTypes(
    "pprof_profile",
    {
        "ValueType": [one("type", 1, INT64), one("unit", 2, INT64)],
        "Label": [one("key", 1, INT64), one("str", 2, INT64)],
        "Sample": [
            many("location_id", 1, INT64),
            many("value", 2, INT64),
            many("label", 3, MESSAGE, "Label"),
        ],
        "Line": [one("function_id", 1, INT64), one("line", 2, INT64)],
        "Location": [one("id", 1, INT64), many("line", 4, MESSAGE, "Line")],
        "Function": [
            one("id", 1, INT64),
            one("name", 2, INT64),
            one("system_name", 3, INT64),
            one("filename", 4, INT64),
        ],
        "Profile": [
            many("sample_type", 1, MESSAGE, "ValueType"),
            many("sample", 2, MESSAGE, "Sample"),
            many("location", 4, MESSAGE, "Location"),
            many("function", 5, MESSAGE, "Function"),
            many("string_table", 6, STRING),
            one("default_sample_type", 14, INT64),
        ],
    },
)
_LABEL = "graph node:"
_SITE = re.compile(r"(?P<file>.*):(?P<line>\d+), in (?P<function>.*)")
Call = tuple[str, str, int]
"""A function, its file and the line in it."""


def write_pprof(
    path: Path, graph: Graph, operations: dict[str, Measured], chosen: dict[str, Any]
) -> None:
    """Writes what the options select of ``operations``, compressed, as pprof reads it."""
    selected = [what for what in chosen["select"] if what in COUNT_OF]
    if not selected:
        raise ValueError(
            f"A profile for pprof needs something to count: select one of {', '.join(COUNT_OF)}, "
            f"not {chosen['select']}"
        )
    made = _Profile(selected)
    sites = {op.name: op.creation_site() for op in graph.get_operations()}
    for name, found in operations.items():
        if not found.matches(chosen["account_type_regexes"]):
            continue
        node = message("GraphNodeProto")(name=name)
        count(node, found)
        values = [getattr(node, COUNT_OF[what]) for what in selected]
        # What is hidden by name is a call, below, not an operation.
        everything = chosen | {"show_name_regexes": [".*"], "hide_name_regexes": []}
        if any(values) and is_shown(name, node, everything):
            # A compiled segment was made by no line: it is a call of its own.
            calls = _calls(sites[name], chosen) if name in sites else [(name, "", 0)]
            made.add(name, calls, [max(found.runs, 1), *values])
    write_whole(path, gzip.compress(made.serialized()))


def _calls(site: list[str], chosen: dict[str, Any]) -> list[Call]:
    """The calls that made an operation, the innermost first, without those that are hidden."""
    calls = []
    for frame in site:
        found = _SITE.fullmatch(frame.partition("\n")[0])
        if found is None:  # of an imported graph
            calls.append((frame, "", 0))
            continue
        file, line, function = found["file"], found["line"], found["function"]
        known_as = f"{os.path.basename(file)}:{line}:{function}"
        if matches_any(known_as, chosen["trim_name_regexes"]):
            break
        hidden = matches_any(known_as, chosen["hide_name_regexes"])
        if not hidden and matches_any(known_as, chosen["show_name_regexes"]):
            module = os.path.splitext(os.path.basename(file))[0]
            calls.append((f"{module}:{function}", file, int(line)))
    return calls[::-1]


class _Profile:
    """The message while it is put together: strings, functions and places are in it once."""

    def __init__(self, selected: list[str]) -> None:
        self._message = _TYPES["Profile"]()
        self._texts: dict[str, int] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Call, int] = {}
        self._text("")
        self._add_kind("count", "count")
        for what in selected:
            self._add_kind(what, _unit(what))
        self._message.default_sample_type = self._text(selected[0])

    def _add_kind(self, kind: str, unit: str) -> None:
        self._message.sample_type.add(type=self._text(kind), unit=self._text(unit))

    def add(self, name: str, calls: list[Call], values: list[int]) -> None:
        """Adds the sample of an operation."""
        sample = self._message.sample.add(value=values)
        sample.location_id.extend(map(self._location, calls))
        sample.label.add(key=self._text(_LABEL), str=self._text(name))

    def serialized(self) -> bytes:
        return self._message.SerializeToString()

    def _text(self, text: str) -> int:
        if text not in self._texts:
            self._texts[text] = len(self._texts)
            self._message.string_table.append(text)
        return self._texts[text]

    def _function(self, name: str, file: str) -> int:
        number = self._functions.get((name, file))
        if number is None:
            number = self._functions[name, file] = len(self._functions) + 1
            text = self._text(name)
            self._message.function.add(
                id=number, name=text, system_name=text, filename=self._text(file)
            )
        return number

    def _location(self, call: Call) -> int:
        number = self._locations.get(call)
        if number is None:
            number = self._locations[call] = len(self._locations) + 1
            name, file, line = call
            place = self._message.location.add(id=number)
            place.line.add(function_id=self._function(name, file), line=line)
        return number


def _unit(what: str) -> str:
    if what.endswith("micros"):
        return "microseconds"
    return "bytes" if what.endswith("bytes") else "count"
