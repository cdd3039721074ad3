"""The order in which the nodes of a ``GraphDef`` can be added: producers before consumers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from runnel.graph.imported_node import ImportedNode

_MERGES = frozenset({"Merge", "RefMerge"})
_BACK_EDGES = frozenset({"NextIteration", "RefNextIteration"})


def is_back_edge(producer: ImportedNode, consumer: ImportedNode) -> bool:
    """True for the edge that closes a loop, from an iteration's end to the next one's start."""
    return producer.op_def.name in _BACK_EDGES and consumer.op_def.name in _MERGES


def _producers(node: ImportedNode, nodes: dict[str, ImportedNode]) -> Iterator[str]:
    """Those of ``nodes`` that must be added before ``node``."""
    for endpoint in node.inputs:
        if isinstance(endpoint, tuple):
            producer = nodes.get(endpoint[0])
            if producer is not None and not is_back_edge(producer, node):
                yield endpoint[0]
    for name in node.controls:
        if isinstance(name, str) and name in nodes:
            yield name


def import_order(nodes: dict[str, ImportedNode]) -> list[ImportedNode]:
    """``nodes`` with producers first, and otherwise in their present order.

    A cycle, other than a loop's, is a ValueError that lists its nodes.
    """
    positions = {name: i for i, name in enumerate(nodes)}
    by_position = list(nodes.values())
    waiting = [0] * len(nodes)
    consumers: list[list[int]] = [[] for _ in nodes]
    for i, node in enumerate(by_position):
        for name in set(_producers(node, nodes)):
            waiting[i] += 1
            consumers[positions[name]].append(i)
    # The smallest ready position first: a list that is in order already stays as it is.
    ready = [i for i, count in enumerate(waiting) if count == 0]
    ordered: list[ImportedNode] = []
    while ready:
        position = heapq.heappop(ready)
        ordered.append(by_position[position])
        for i in consumers[position]:
            waiting[i] -= 1
            if waiting[i] == 0:
                heapq.heappush(ready, i)
    if len(ordered) < len(nodes):
        left = {node.name: node for node, count in zip(by_position, waiting) if count > 0}
        cycle = " -> ".join(repr(name) for name in _find_cycle(left))
        raise ValueError(f"The GraphDef has a cycle: {cycle}.")
    return ordered


def _find_cycle(nodes: dict[str, ImportedNode]) -> list[str]:
    """A cycle among ``nodes``, each of which has a producer among them."""
    path: list[str] = []
    at: dict[str, int] = {}
    name = next(iter(nodes))
    while name not in at:
        at[name] = len(path)
        path.append(name)
        name = next(_producers(nodes[name], nodes))
    return [name, *reversed(path[at[name] :])]
