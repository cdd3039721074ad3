"""Removes nodes whose values nobody uses any more, after other passes have replaced them."""

from __future__ import annotations

from runnel.passes.program.program import Node, Program


def remove_dead_code(program: Program) -> Program:
    """The program without pure nodes that lead to no fetch and no effect."""
    live = set(program.fetches)
    kept_nodes: set[Node] = set()
    awaited: set[Node] = set()
    for node in reversed(program.nodes):
        pure = not node.op_def.stateful
        if pure and node not in awaited and live.isdisjoint(node.outputs):
            continue
        kept_nodes.add(node)
        live.update(node.inputs)
        awaited.update(node.control)
    nodes = [node for node in program.nodes if node in kept_nodes]
    return Program(nodes, program.feeds, program.fetches, program.infos)


def without(nodes: list[Node], removed: set[Node]) -> list[Node]:
    """``nodes`` less those that were removed, for which nothing waits any more."""
    made: dict[Node, Node] = {}
    for node in nodes:
        if node in removed:
            continue
        control = tuple(made[c] for c in node.control if c not in removed)
        made[node] = node if control == node.control else node.taking(node.inputs, control)
    return list(made.values())
