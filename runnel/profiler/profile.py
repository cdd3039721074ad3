"""``tf.profiler.profile``: parameters, arithmetic, time and memory by scope or by type."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from runnel.graph.graph import Graph, get_default_graph
from runnel.graph.message_types import INT64, MESSAGE, STRING, MessageTypes, many, one
from runnel.profiler.measured import Measured, measured
from runnel.profiler.option_builder import ProfileOptionBuilder

_ROOT = "_TFProfRoot"
_COUNT_OF = {
    "micros": "exec_micros",
    "bytes": "requested_bytes",
    "params": "parameters",
    "float_ops": "float_ops",
}
_COUNTS = tuple(_COUNT_OF.values())

_TYPES = MessageTypes(
    "tfprof_output",
    {
        "GraphNodeProto": [
            one("name", 1, STRING),
            one("run_count", 21, INT64),
            one("exec_micros", 2, INT64),
            one("requested_bytes", 3, INT64),
            one("parameters", 4, INT64),
            one("float_ops", 13, INT64),
            many("devices", 10, STRING),
            one("total_definition_count", 23, INT64),
            one("total_run_count", 22, INT64),
            one("total_exec_micros", 6, INT64),
            one("total_requested_bytes", 7, INT64),
            one("total_parameters", 8, INT64),
            one("total_float_ops", 14, INT64),
            many("children", 12, MESSAGE, "GraphNodeProto"),
        ],
        "MultiGraphNodeProto": [
            one("name", 1, STRING),
            one("exec_micros", 2, INT64),
            one("requested_bytes", 3, INT64),
            one("parameters", 4, INT64),
            one("float_ops", 5, INT64),
            one("total_exec_micros", 6, INT64),
            one("total_requested_bytes", 7, INT64),
            one("total_parameters", 8, INT64),
            one("total_float_ops", 9, INT64),
            many("graph_nodes", 10, MESSAGE, "GraphNodeProto"),
            many("children", 11, MESSAGE, "MultiGraphNodeProto"),
        ],
    },
)


@cache
def message(name: str) -> Any:
    """The class of the message ``name``."""
    return _TYPES[name]


def profile(
    graph: Graph | None = None,
    run_meta: Any = None,
    op_log: Any = None,
    cmd: str = "scope",
    options: dict[str, Any] | None = None,
) -> Any:
    """Parameters of a graph, and the time and memory of a step that was traced.

    ``cmd`` is ``scope`` (a tree of scopes, a ``GraphNodeProto``) or ``op`` (types of operations, a
    ``MultiGraphNodeProto``). Floating-point operations are those of operations that TensorFlow
    counts, where the graph knows their shapes: give placeholders the size of a batch.

    Example:
        >>> build = tf.profiler.ProfileOptionBuilder
        >>> options = build.trainable_variables_parameter()
        >>> tf.profiler.profile(options=options).total_parameters
    """
    traces = [] if run_meta is None else [run_meta]
    return make_profile(graph or get_default_graph(), traces, cmd, options)


def make_profile(graph: Graph, traces: list[Any], cmd: str, options: dict[str, Any] | None) -> Any:
    """A profile from several traced steps."""
    chosen = ProfileOptionBuilder().build() | (options or {})
    operations = measured(graph, traces)
    if cmd == "scope":
        found = _by_scope(operations, chosen)
    elif cmd == "op":
        found = _by_type(operations.values(), chosen)
    else:
        raise ValueError(f"A profile is made by 'scope' or by 'op', not by {cmd!r}")
    _output(found, chosen)
    return found


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(re.match(pattern, name) for pattern in patterns)


def _sort_key(chosen: dict[str, Any]) -> Any:
    order = chosen["order_by"]
    if order not in _COUNT_OF:
        return lambda node: node.name
    return lambda node: (-getattr(node, f"total_{_COUNT_OF[order]}"), node.name)


# By scope ---------------------------------------------------------------------------------------


def _by_scope(operations: dict[str, Measured], chosen: dict[str, Any]) -> Any:
    """The tree of names; scopes that no operation has are there too."""
    children: dict[str, dict[str, None]] = {}
    for name in operations:
        parts = name.split("/")
        for depth in range(len(parts)):
            parent = "/".join(parts[:depth])
            children.setdefault(parent, {})["/".join(parts[: depth + 1])] = None
    [root] = _scope("", _ROOT, operations, children, chosen, 0)
    return root


def _scope(
    name: str,
    shown_as: str,
    operations: dict[str, Measured],
    children: dict[str, dict[str, None]],
    chosen: dict[str, Any],
    depth: int,
) -> list[Any]:
    """A scope with what is inside of it; only what is inside, where it is not to be shown."""
    node = message("GraphNodeProto")(name=shown_as)
    found = operations.get(name)
    if found is not None:
        node.total_definition_count = 1
        if found.matches(chosen["account_type_regexes"]):
            _count(node, found)
    kept = []
    if not name or not _matches(name, chosen["trim_name_regexes"]):
        for inner in children.get(name, {}):
            kept += _scope(inner, inner, operations, children, chosen, depth + 1)
    for child in kept:
        for count in _COUNTS:
            total = f"total_{count}"
            setattr(node, total, getattr(node, total) + getattr(child, total))
        node.total_run_count += child.total_run_count
        node.total_definition_count += child.total_definition_count
    if not name or _is_shown(name, node, chosen):
        if depth < chosen["max_depth"]:
            node.children.extend(sorted(kept, key=_sort_key(chosen)))
        return [node]
    return kept


def _is_shown(name: str, node: Any, chosen: dict[str, Any]) -> bool:
    # Nearly everything computes: that alone shows only where arithmetic is asked for.
    asked = [c for c in _COUNTS if c != "float_ops" or c in chosen["select"]]
    if not any(getattr(node, f"total_{count}") for count in asked):
        return False
    for what, count in _COUNT_OF.items():
        if getattr(node, f"total_{count}") < chosen[f"min_{what}"]:
            return False
    if _matches(name, chosen["hide_name_regexes"]):
        return False
    return _matches(name, chosen["show_name_regexes"])


def _count(node: Any, found: Measured) -> None:
    node.exec_micros = node.total_exec_micros = round(found.micros)
    node.requested_bytes = node.total_requested_bytes = round(found.bytes)
    node.parameters = node.total_parameters = found.parameters
    node.float_ops = node.total_float_ops = found.float_ops
    node.run_count = node.total_run_count = found.runs
    if found.device:
        node.devices.append(found.device)


# By type ----------------------------------------------------------------------------------------


def _by_type(operations: Iterable[Measured], chosen: dict[str, Any]) -> Any:
    """One node for each type; all are children of the root."""
    types: dict[str, list[Measured]] = {}
    for operation in operations:
        if operation.matches(chosen["account_type_regexes"]):
            types.setdefault(operation.types[0], []).append(operation)
    root = message("MultiGraphNodeProto")(name=_ROOT)
    made = []
    for kind, members in types.items():
        if len(members) < chosen["min_occurrence"]:
            continue
        node = message("MultiGraphNodeProto")(name=kind)
        for member in members:
            _count(node.graph_nodes.add(name=member.name), member)
        for count in _COUNTS:
            total = sum(getattr(counted, count) for counted in node.graph_nodes)
            setattr(node, count, total)
            setattr(node, f"total_{count}", total)
        if _is_shown(kind, node, chosen):
            made.append(node)
    for node in sorted(made, key=_sort_key(chosen)):
        root.children.append(node)
        for count in _COUNTS:
            total = f"total_{count}"
            setattr(root, total, getattr(root, total) + getattr(node, count))
    return root


# Showing ----------------------------------------------------------------------------------------


def _output(found: Any, chosen: dict[str, Any]) -> None:
    kind, _, rest = chosen["output"].partition(":")
    if kind == "stdout":
        print(profile_text(found, chosen["select"]))
    elif kind == "file":
        path = rest.removeprefix("outfile=")
        Path(path).write_text(profile_text(found, chosen["select"]) + "\n", encoding="utf-8")


def profile_text(found: Any, select: Iterable[str]) -> str:
    """A profile as a table: own counts, and those with all that is inside."""
    columns = [what for what in select if what in _COUNT_OF]
    rows = [("node name", *(f"{what} (own/total)" for what in columns))]
    stack = [(found, 0)]
    while stack:
        node, depth = stack.pop()
        cells = [
            f"{getattr(node, _COUNT_OF[what])}/{getattr(node, f'total_{_COUNT_OF[what]}')}"
            for what in columns
        ]
        rows.append(("  " * depth + node.name, *cells))
        stack += [(child, depth + 1) for child in reversed(node.children)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns) + 1)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
