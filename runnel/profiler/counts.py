"""What a profile counts of an operation, the messages that hold it, and what is shown of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from runnel.graph.message_types import INT64, MESSAGE, STRING, MessageTypes, many, one
from runnel.profiler.measured import Measured

ROOT = "_TFProfRoot"
COUNT_OF = {
    "micros": "exec_micros",
    "accelerator_micros": "accelerator_exec_micros",
    "cpu_micros": "cpu_exec_micros",
    "bytes": "requested_bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "params": "parameters",
    "float_ops": "float_ops",
}
"""What options call a count, and what messages call it."""
COUNTS = tuple(COUNT_OF.values())
ORDERS = ("name", *COUNT_OF, "occurrence")

_OF_GRAPH_NODE = {
    **{"exec_micros": (2, 6), "accelerator_exec_micros": (17, 19), "cpu_exec_micros": (18, 20)},
    **{"requested_bytes": (3, 7), "peak_bytes": (24, 27), "residual_bytes": (25, 28)},
    **{"output_bytes": (26, 29), "parameters": (4, 8), "float_ops": (13, 14)},
}
"""The numbers of the fields for a count, and for its total."""
_OF_MULTI_GRAPH_NODE = {
    **{"exec_micros": (2, 6), "accelerator_exec_micros": (12, 14), "cpu_exec_micros": (13, 15)},
    **{"requested_bytes": (3, 7), "peak_bytes": (16, 19), "residual_bytes": (17, 20)},
    **{"output_bytes": (18, 21), "parameters": (4, 8), "float_ops": (5, 9)},
}


def _fields(numbers: dict[str, tuple[int, int]]) -> list[Any]:
    own = [one(name, number, INT64) for name, (number, _) in numbers.items()]
    return [*own, *(one(f"total_{name}", number, INT64) for name, (_, number) in numbers.items())]


_TYPES = MessageTypes(
    "tfprof_output",
    {
        "GraphNodeProto": [
            one("name", 1, STRING),
            *_fields(_OF_GRAPH_NODE),
            one("run_count", 21, INT64),
            one("total_run_count", 22, INT64),
            one("total_definition_count", 23, INT64),
            many("devices", 10, STRING),
            many("children", 12, MESSAGE, "GraphNodeProto"),
        ],
        "MultiGraphNodeProto": [
            one("name", 1, STRING),
            *_fields(_OF_MULTI_GRAPH_NODE),
            many("graph_nodes", 10, MESSAGE, "GraphNodeProto"),
            many("children", 11, MESSAGE, "MultiGraphNodeProto"),
        ],
        "OpLogEntry": [
            one("name", 1, STRING),
            one("float_ops", 2, INT64),
            many("types", 3, STRING),
        ],
        "Checker": [many("reports", 2, STRING)],
        "AdviceProto": [many("checkers", 1, MESSAGE, "AdviceProto.CheckersEntry")],
        "AdviceProto.CheckersEntry": [one("key", 1, STRING), one("value", 2, MESSAGE, "Checker")],
        "OpLogProto": [many("log_entries", 1, MESSAGE, "OpLogEntry")],
    },
)


@cache
def message(name: str) -> Any:
    """The class of the message ``name``."""
    return _TYPES[name]


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """True when one of ``patterns`` matches the beginning of ``name``."""
    return any(re.match(pattern, name) for pattern in patterns)


def count(node: Any, found: Measured) -> None:
    """Writes what is known of an operation into its node."""
    measures = {
        "exec_micros": found.micros,
        "accelerator_exec_micros": found.accelerator_micros,
        "cpu_exec_micros": found.micros - found.accelerator_micros,
        "requested_bytes": found.bytes,
        "peak_bytes": found.peak_bytes,
        "residual_bytes": found.output_bytes,
        "output_bytes": found.output_bytes,
        "parameters": found.parameters,
        "float_ops": found.float_ops,
    }
    for name, value in measures.items():
        setattr(node, name, round(value))
        setattr(node, f"total_{name}", round(value))
    node.run_count = node.total_run_count = found.runs
    if found.device:
        node.devices.append(found.device)


def add_totals(node: Any, other: Any) -> None:
    """Adds the totals of ``other`` to those of ``node``."""
    for name in COUNTS:
        total = f"total_{name}"
        setattr(node, total, getattr(node, total) + getattr(other, total))
    if hasattr(node, "total_run_count"):
        node.total_run_count += other.total_run_count
        node.total_definition_count += other.total_definition_count


def is_shown(name: str, node: Any, chosen: dict[str, Any]) -> bool:
    """Whether a node that is called ``name`` is one of those that options ask for."""
    # Nearly everything computes: that alone shows only where arithmetic is asked for.
    asked = [c for c in COUNTS if c != "float_ops" or c in chosen["select"]]
    if not any(getattr(node, f"total_{count}") for count in asked):
        return False
    for what, field in COUNT_OF.items():
        if getattr(node, f"total_{field}") < chosen.get(f"min_{what}", 0):
            return False
    if matches_any(name, chosen["hide_name_regexes"]):
        return False
    return matches_any(name, chosen["show_name_regexes"])


def sort_key(chosen: dict[str, Any]) -> Any:
    """Puts nodes into the order that is asked for."""
    order = chosen["order_by"]
    if order not in ORDERS:
        raise ValueError(f"order_by is {order!r}; there are {', '.join(ORDERS)}")
    if order == "name":
        return lambda node: node.name
    if order == "occurrence":
        return lambda node: (-_occurrence(node), node.name)
    return lambda node: (-getattr(node, f"total_{COUNT_OF[order]}"), node.name)


def _occurrence(node: Any) -> int:
    if hasattr(node, "graph_nodes"):
        return len(node.graph_nodes) + sum(map(_occurrence, node.children))
    return int(node.total_definition_count)
