"""Profiles that put operations together: by their types, or by the lines that made them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from runnel.graph.graph import Graph
from runnel.profiler.counts import (
    COUNTS,
    ROOT,
    add_totals,
    count,
    is_shown,
    matches_any,
    message,
    sort_key,
)
from runnel.profiler.measured import Measured


def by_type(operations: Iterable[Measured], chosen: dict[str, Any]) -> Any:
    """One node for each type; all are children of the root."""
    types: dict[str, list[Measured]] = {}
    for operation in operations:
        if operation.matches(chosen["account_type_regexes"]):
            types.setdefault(operation.types[0], []).append(operation)
    root = message("MultiGraphNodeProto")(name=ROOT)
    made = []
    for kind, members in types.items():
        if len(members) < chosen["min_occurrence"]:
            continue
        node = _group(kind, members)
        if not chosen["account_displayed_op_only"]:
            add_totals(root, node)
        if matches_any(kind, chosen["start_name_regexes"]) and is_shown(kind, node, chosen):
            made.append(node)
    for node in sorted(made, key=sort_key(chosen)):
        root.children.append(node)
        if chosen["account_displayed_op_only"]:
            add_totals(root, node)
    return root


def by_code(graph: Graph, operations: dict[str, Measured], chosen: dict[str, Any]) -> Any:
    """The tree of the calls that made operations: ``FILE:LINE:FUNCTION``, the outermost first."""
    members: dict[tuple[str, ...], list[Measured]] = {}
    for op in graph.get_operations():
        found = operations[op.name]
        if found.matches(chosen["account_type_regexes"]):
            calls = tuple(map(_call_name, op.creation_site()))
            members.setdefault(calls, []).append(found)
    return _code(ROOT, (), members, chosen)[0]


def _code(
    name: str,
    path: tuple[str, ...],
    members: dict[tuple[str, ...], list[Measured]],
    chosen: dict[str, Any],
) -> list[Any]:
    """The calls at ``path`` with those inside; only these, where it is not to be shown."""
    node = _group(name, members.get(path, ()))
    depth = len(path)
    inside = dict.fromkeys(p[: depth + 1] for p in members if len(p) > depth and p[:depth] == path)
    kept = []
    for inner in inside:
        if not matches_any(inner[-1], chosen["trim_name_regexes"]):
            kept += _code(inner[-1], inner, members, chosen)
    for child in kept:
        add_totals(node, child)
    if path and not is_shown(name, node, chosen):
        return kept
    if depth < chosen["max_depth"]:
        node.children.extend(sorted(kept, key=sort_key(chosen)))
    return [node]


def _call_name(site: str) -> str:
    """``/folder/file.py:3, in function`` as ``file.py:3:function``."""
    place, _, function = site.partition("\n")[0].partition(", in ")
    return f"{os.path.basename(place)}:{function}" if function else place


def _group(name: str, members: Iterable[Measured]) -> Any:
    """A node for several operations."""
    node = message("MultiGraphNodeProto")(name=name)
    for member in members:
        count(node.graph_nodes.add(name=member.name), member)
    for what in COUNTS:
        total = sum(getattr(counted, what) for counted in node.graph_nodes)
        setattr(node, what, total)
        setattr(node, f"total_{what}", total)
    return node
