"""Removes stacks whose popped values nobody uses, after other passes have made them needless."""

from __future__ import annotations

from runnel.passes.program.program import Node, Program, Replacements
from runnel.passes.rewrites.dead_code import without
from runnel.passes.rewrites.held_values import HeldValues
from runnel.passes.structure.structured import (
    Loop,
    drop_invariants,
    map_programs,
    nested_nodes,
    structure_of,
)

_TOUCHING = ("StackPushV2", "StackPopV2")


def drop_dead_stacks(program: Program) -> Program:
    """``program``, a whole step, without pushes and pops for nothing."""
    held = HeldValues(program)
    dead: set[Node] = set()
    if any(len(holder) == 1 for holder in held.touching):
        used = _used(program)
        for holder, touching in held.touching.items():
            if held.touched_by(holder, ()) is None:
                continue
            if any(node.op_def.name not in _TOUCHING for node in touching):
                continue
            pops = [node for node in touching if node.op_def.name == "StackPopV2"]
            if used.isdisjoint(node.outputs[0] for node in pops):
                dead.update(touching)
    if not dead:
        return program
    program = _without_nodes(program, dead)
    used = _used(program)
    unused = {
        node
        for node in nested_nodes(program.nodes)
        if node.op_def.name == "StackV2" and node.outputs[0] not in used
    }
    return _without_nodes(program, unused)


def _used(program: Program) -> set[int]:
    """What is taken by something, at any depth."""
    used = set(program.fetches)
    for node in nested_nodes(program.nodes):
        used.update(node.inputs)
        structure = structure_of(node)
        if structure is not None:
            for inner in structure.programs:
                used.update(inner.fetches)
    return used


def _without_nodes(program: Program, dead: set[Node]) -> Program:
    """``program`` less ``dead`` nodes; what one pushed is used itself."""
    map_programs(program, lambda inner: _without_nodes(inner, dead), dynamic=False)
    replaced = Replacements()
    nodes: list[Node] = []
    for node in program.nodes:
        if node in dead and node.op_def.name == "StackPushV2":
            pushed = node.inputs[1]
            replaced.values[node.outputs[0]] = replaced.values.get(pushed, pushed)
        nodes.append(replaced.applied(node))
    gone = {replaced.nodes.get(node, node) for node in program.nodes if node in dead}
    kept = without(nodes, gone)
    for node in kept:
        structure = structure_of(node)
        if isinstance(structure, Loop):
            drop_invariants(program, node)
    return replaced.program(program, kept)
