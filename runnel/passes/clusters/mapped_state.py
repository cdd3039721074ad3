"""Keeps nodes on the host that take variables in mapped files (``runnel.mapped_array``).

XLA would take such a variable as a whole. So nodes that take its value run on the host, with NumPy,
which touches only the rows that it looks up or sets. The rest of the step is compiled as usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from runnel.graph.graph_scopes import mapped_folder
from runnel.graph.operation import Operation
from runnel.ops.block_value import ELEMENTWISE
from runnel.passes.program.program import Node, Program
from runnel.passes.program.state_access import StateAccess

_READS = frozenset({"Identity", "ReadVariableOp"})
_VIEWS = frozenset({"Identity", "Reshape", "ExpandDims", "Squeeze"})
"""Operations that give all elements that they take, as a view of the same memory."""
PARTS = frozenset({"Slice", "StridedSlice"})
"""Operations that give some elements, as a view of the same memory."""
BY_ROWS = _VIEWS | {
    *("Gather", "GatherV2", "GatherNd", "ResourceGather", "ResourceGatherNd", "ReadVariableOp"),
    *("Shape", "ShapeN", "Size", "Rank", "VariableShape", "IsVariableInitialized"),
    *("VarIsInitializedOp", "DisableCopyOnRead", "SaveV2"),
}
"""Operations that take as many rows of a mapped variable as they need, and copy no more."""
_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_SETS = _ASSIGNS | {
    *("ScatterUpdate", "ResourceScatterUpdate", "ScatterNdUpdate", "ResourceScatterNdUpdate"),
}
"""Updates that do not look themselves at what they replace."""
_HEAVY = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "SparseMatMul", "Einsum"})


def mapped_variables(program: Program, state: StateAccess) -> frozenset[Operation]:
    """The variables that ``program`` touches whose values are in mapped files."""
    found = {variable for variable in state.variable_of.values() if mapped_folder(variable)}
    for node in program.nodes:
        if "touched" in node.attrs:  # a loop or a conditional
            found.update(filter(mapped_folder, node.attrs["touched"].variables))
    return frozenset(found)


Blocks = dict[Node, list[bool]]
"""Nodes that make what a mapped variable is to be, as a ``BlockValue``: which of their outputs."""


def kept_on_host(
    program: Program, state: StateAccess, device_of: Mapping[Node, Any] | None
) -> tuple[frozenset[Node], Blocks]:
    """The nodes of ``program`` that are not compiled because of mapped variables.

    And those among them that make values for such variables in blocks.
    """
    mapped = mapped_variables(program, state)
    if not mapped:
        return frozenset(), {}
    whole = {value for value, variable in state.variable_of.items() if variable in mapped}
    kept: set[Node] = set()
    for node in program.nodes:
        if node.op_def.variable:
            continue
        touched = [*state.reads(node), *state.writes(node)] if state.touches(node) else []
        if not whole.isdisjoint(node.inputs) or not mapped.isdisjoint(touched):
            kept.add(node)
            if node.op_def.name in _READS | _VIEWS:
                whole.update(node.outputs)
    kept |= _between(program, state, mapped)
    blocks = _in_blocks(program, state, device_of)
    return frozenset(kept.union(blocks)), blocks


def _between(program: Program, state: StateAccess, mapped: frozenset[Operation]) -> set[Node]:
    """What an update of rows computes of the rows that it has just looked up.

    On the host too, so that looking up and setting are one segment, which has the right to write
    meanwhile. Where something heavy is between them it was no such update.
    """
    producers = program.producers()
    before: dict[Node, list[Node]] = {
        node: [*(producers[v] for v in node.inputs if v in producers), *node.control]
        for node in program.nodes
    }
    lookups = {node for node in program.nodes if _looks_up(node, state, mapped, producers)}
    found: set[Node] = set()
    for write in program.nodes:
        if write.op_def.name in _SETS and not mapped.isdisjoint(state.writes(write)):
            path = _path(write, program, before, lookups)
            if not any(map(_is_heavy, path)):
                found |= path
    return found


def _is_heavy(node: Node) -> bool:
    return node.op_def.heavy or node.op_def.name in _HEAVY or "touched" in node.attrs


def _path(
    write: Node, program: Program, before: dict[Node, list[Node]], lookups: set[Node]
) -> set[Node]:
    """The last lookups that ``write`` needs, and all that is between them and it.

    The lookup with which a step begins is none of the last: all of the model is behind it.
    """
    needed = {write}
    queue = [write]
    while queue:
        for source in before[queue.pop()]:
            if source not in needed:
                needed.add(source)
                queue.append(source)
    earlier: set[Node] = set()
    for node in reversed(program.nodes):
        if node in needed and (node in lookups or node in earlier):
            earlier.update(before[node])
    path = (needed & lookups) - earlier
    for node in program.nodes:
        if node in needed and not path.isdisjoint(before[node]):
            path.add(node)
    return path


def _looks_up(
    node: Node, state: StateAccess, mapped: frozenset[Operation], producers: dict[int, Node]
) -> bool:
    """True for what takes a mapped variable's value and does not replace it."""
    op_def = node.op_def
    if op_def.variable or op_def.updates or op_def.overwrites or op_def.name in _READS:
        return False
    for value in node.inputs:
        while value in producers and producers[value].op_def.name in _READS:
            value = producers[value].inputs[0]
        if state.variable_of.get(value) in mapped:
            return True
    return False


def _in_blocks(
    program: Program, state: StateAccess, device_of: Mapping[Node, Any] | None
) -> Blocks:
    nodes, outputs = program.nodes, program.fetches
    consumers = program.takers()
    touching: Counter[Operation] = Counter()
    for node in nodes:
        if state.touches(node):
            touching.update({*state.reads(node), *state.writes(node)})

    def is_beside(node: Node, taker: Node) -> bool:
        return device_of is None or device_of[node] == device_of[taker]

    found: Blocks = {}
    takes_any: set[Node] = set()
    for node in reversed(nodes):
        if node.op_def.name in _ASSIGNS:
            [variable] = state.writes(node)
            if touching[variable] == 1 and mapped_folder(variable):
                if not any(value in outputs or value in consumers for value in node.outputs):
                    found[node] = []
                    takes_any.add(node)
            continue
        wanted = [
            value in consumers
            and value not in outputs
            and all(taker in found and is_beside(node, taker) for taker in consumers[value])
            for value in node.outputs
        ]
        values = [value for value, wants in zip(node.outputs, wanted, strict=True) if wants]
        takers = [taker for value in values for taker in consumers[value]]
        if takers and _can_make_blocks(node, program, takers, found, takes_any):
            found[node] = wanted
            if node.op_def.name == "Reshape" or (
                node.op_def.name == "Identity" and takes_any.issuperset(takers)
            ):
                takes_any.add(node)
    # A value that the nodes behind it take in blocks must come in blocks.
    given = {v for node, wanted in found.items() for v, w in zip(node.outputs, wanted) if w}
    while True:
        left = [n for n in found if n.op_def.block_kernel is None and given.isdisjoint(n.inputs)]
        if not left:
            return found
        for node in left:
            given.difference_update(node.outputs)
            del found[node]


def _can_make_blocks(
    node: Node,
    program: Program,
    takers: list[Node],
    found: Blocks,
    takes_any: set[Node],
) -> bool:
    """``takes_any`` are those of the takers that need not have any rows when they want them."""
    infos, name = program.infos, node.op_def.name
    if name == "RestoreV2":
        return takes_any.issuperset(takers)
    dims = infos[node.outputs[0]].dims
    if dims is None or None in dims or not dims:
        return False
    if name == "Reshape":  # of what is restored, to the shape that the variable has
        return takes_any.issuperset(takers)
    if node.op_def.block_kernel is None and name not in ELEMENTWISE:
        return False
    return all(infos[value].dims == dims for t in takers if found[t] for value in t.outputs)
