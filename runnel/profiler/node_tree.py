"""Profiles as trees of operations: by the scopes of their names, or from results to inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runnel.graph.graph import Graph
from runnel.profiler.counts import ROOT, add_totals, count, is_shown, matches_any, message, sort_key
from runnel.profiler.measured import Measured

_DEEPEST = 64
"""How deep messages are nested: readers of protocol buffers refuse more than 100."""
Inner = Callable[[str], Sequence[str]]
"""The names of what is below something of a name."""


def by_scope(operations: dict[str, Measured], chosen: dict[str, Any]) -> Any:
    """The tree of names; scopes that no operation has are there too."""
    children: dict[str, dict[str, None]] = {}
    for name in operations:
        parts = name.split("/")
        for depth in range(len(parts)):
            parent = "/".join(parts[:depth])
            children.setdefault(parent, {})["/".join(parts[: depth + 1])] = None
    return _Tree(operations, chosen, lambda name: [*children.get(name, {})]).root()


def by_graph(graph: Graph, operations: dict[str, Measured], chosen: dict[str, Any]) -> Any:
    """The tree from what nobody takes to what is taken; each operation is in it once."""
    ops = {op.name: op for op in graph.get_operations()}
    taken = {tensor.op.name for op in ops.values() for tensor in op.inputs}
    placed: set[str] = set()

    def inner(name: str) -> list[str]:
        found = [n for n in operations if n not in taken] if not name else []
        if name in ops:
            found = [tensor.op.name for tensor in ops[name].inputs]
        new = [one for one in dict.fromkeys(found) if one not in placed]
        placed.update(new)
        return new

    return _Tree(operations, chosen, inner).root()


class _Tree:
    """Makes the nodes of a tree; ``inner`` is asked once for each."""

    def __init__(
        self, operations: dict[str, Measured], chosen: dict[str, Any], inner: Inner
    ) -> None:
        self._operations = operations
        self._chosen = chosen
        self._inner = inner
        self._key = sort_key(chosen)

    def root(self) -> Any:
        """The node above all."""
        made = message("GraphNodeProto")(name=ROOT)
        for name in self._starts(""):
            shown, whole = self._nodes(name)
            for node in shown:
                made.children.append(node)
            for node in [whole] if not self._chosen["account_displayed_op_only"] else shown:
                add_totals(made, node)
        ordered = sorted(made.children, key=self._key)
        del made.children[:]
        made.children.extend(ordered if self._chosen["max_depth"] > 0 else [])
        return made

    def _starts(self, name: str) -> list[str]:
        """The highest nodes below ``name`` that a tree may start with."""
        found = []
        left = [*self._inner(name)]
        while left:
            inner = left.pop(0)
            if matches_any(inner, self._chosen["start_name_regexes"]):
                found.append(inner)
            else:
                left += self._inner(inner)
        return found

    def _nodes(self, name: str) -> tuple[list[Any], Any]:
        """What is shown of a node and what is below it; and the node with the totals of all."""
        # Graphs are deeper than Python calls may be.
        opened = [self._opened(name)]
        while True:
            last = opened[-1]
            if last.left:
                opened.append(self._opened(last.left.pop(0)))
                continue
            opened.pop()
            shown = self._closed(last, len(opened) + 1)
            if not opened:
                return shown, last.whole
            opened[-1].kept += shown
            add_totals(opened[-1].whole, last.whole)

    def _opened(self, name: str) -> _Opened:
        node = message("GraphNodeProto")(name=name)
        found = self._operations.get(name)
        if found is not None:
            node.total_definition_count = 1
            if found.matches(self._chosen["account_type_regexes"]):
                count(node, found)
        trimmed = matches_any(name, self._chosen["trim_name_regexes"])
        whole = message("GraphNodeProto")()
        whole.CopyFrom(node)
        return _Opened(node, whole, [] if trimmed else [*self._inner(name)])

    def _closed(self, last: _Opened, depth: int) -> list[Any]:
        """What is shown of a node, all below which is known."""
        node = last.node
        if self._chosen["account_displayed_op_only"]:
            for child in last.kept:
                add_totals(node, child)
        else:
            node.CopyFrom(last.whole)
        if not is_shown(node.name, node, self._chosen):
            return last.kept
        if depth < min(self._chosen["max_depth"], _DEEPEST):
            node.children.extend(sorted(last.kept, key=self._key))
        return [node]


@dataclass(slots=True)
class _Opened:
    """A node whose inner ones are being made."""

    node: Any
    whole: Any
    """The same with the totals of all below it, shown or not."""
    left: list[str]
    kept: list[Any] = field(default_factory=list)
