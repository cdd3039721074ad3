"""Outputs by name: a function's nodes name a tensor ``node:output:0``, a graph's ``node:3``."""

from __future__ import annotations

import re
from typing import Any

from runnel.graph.functions.body import Body
from runnel.graph.functions.library import FUNCTIONAL
from runnel.graph.registry import find_op_def
from runnel.graph.signature import REQUIRED, Argument, Attribute

_NUMBER = re.compile(r"[0-9]{1,9}")


def output_index(node: Any, text: str, function: Body | None) -> list[int]:
    """The indices of the outputs of ``node`` that ``text`` (``"output:0"``) names.

    Without a number it names all outputs of that name. ``function`` is the one that ``node``
    calls by its type, if it does.
    """
    name, colon, number = text.partition(":")
    if colon and not _NUMBER.fullmatch(number):
        raise ValueError(f"{number!r} is no index of an output")
    first, count = _range(node, name, function)
    if not colon:
        if count is None:
            raise ValueError(f"it does not say which output {name!r} is meant")
        return list(range(first, first + count))
    if count is not None and int(number) >= count:
        raise ValueError(f"{node.name!r} ({node.op}) has {count} outputs {name!r}")
    return [first + int(number)]


def _range(node: Any, name: str, function: Body | None) -> tuple[int, int | None]:
    """Where the outputs ``name`` of ``node`` begin, and how many they are, if that is known."""
    if function is not None:
        if name not in function.result_ranges:
            raise ValueError(f"the function {node.op!r} returns no {name!r}")
        starts = sorted({*function.result_ranges.values(), len(function.results)})
        first = function.result_ranges[name]
        after = [start for start in starts if start > first]
        return first, after[0] - first if after else 0
    if node.op in FUNCTIONAL:
        if name != "output":
            raise ValueError(f"{node.op} has no output {name!r}")
        return 0, None
    op_def = find_op_def(node.op)
    if op_def is None:
        return 0, None  # the import names every type that is not registered
    first = 0
    for argument in op_def.outputs:
        count = _count(node, argument, op_def.attributes)
        if argument.name == name:
            return first, count
        first += count
    raise ValueError(f"{node.op} has no output {name!r}")


def _count(node: Any, argument: Argument, attributes: Any) -> int:
    key = argument.type_list_attr or argument.number_attr
    if key is None:
        return 1
    if key in node.attr:
        value = node.attr[key]
        return len(value.list.type) if argument.type_list_attr else int(value.i)
    attribute: Attribute = attributes[key]
    if attribute.default is REQUIRED:
        raise ValueError(f"{node.name!r} ({node.op}) lacks the attribute {key!r}")
    default: Any = attribute.default
    return len(default) if argument.type_list_attr else int(default)
