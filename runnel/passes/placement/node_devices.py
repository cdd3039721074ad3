"""The device of each node of a placed program."""

from __future__ import annotations

from collections.abc import Iterable

from runnel.graph.device_set import LogicalDevice
from runnel.passes.placement.kernel_devices import follows_values
from runnel.passes.placement.placement import Placement
from runnel.passes.program.program import Node, Program, is_constant
from runnel.passes.structure.structured import nested_nodes, structure_of, touched_by

_READS = frozenset({"Identity", "ReadVariableOp"})


def devices_computing(nodes: Iterable[Node], placement: Placement) -> list[LogicalDevice]:
    """The devices on which ``nodes``, and those inside them, compute.

    What only passes values on has no say, nor has a read of a variable: its value is brought.
    """
    found: dict[LogicalDevice, None] = {}
    for node in nested_nodes(nodes):
        if structure_of(node) is not None:
            found.update(dict.fromkeys(map(placement.device_of, touched_by(node).writes)))
        elif not node.op_def.variable and not follows_values(node.op):
            if node.op_def.name not in _READS:
                found[placement.device_of(node.op)] = None
    return list(found)


def computes_on_several(nodes: Iterable[Node], placement: Placement) -> bool:
    """True when ``nodes`` compute on more than one device."""
    return len(devices_computing(nodes, placement)) > 1


def devices_of_nodes(program: Program, placement: Placement) -> dict[Node, LogicalDevice]:
    """The device of each node; one that reads a variable is where the variable is."""
    variables: dict[int, LogicalDevice] = {}
    found: dict[Node, LogicalDevice] = {}
    for node in program.nodes:
        if structure_of(node) is not None:
            computing = devices_computing([node], placement)
            found[node] = computing[0] if computing else placement.device_of(node.op)
            continue
        device = placement.device_of(node.op)
        if node.op_def.variable:
            variables[node.outputs[0]] = device
        elif node.op_def.name == "Identity" and node.inputs[0] in variables:
            device = variables[node.inputs[0]]  # a read, made for one of its consumers
        found[node] = device
    return found


def hand_on_where_made(
    program: Program, device_of: dict[Node, LogicalDevice], part_of: dict[Node, str]
) -> None:
    """Moves what only hands a value on to the caller to the part that makes the value.

    The caller is given it from there; where it was, nothing has to wait for it.
    """
    producers = program.producers()
    takers = program.takers()
    awaited = {control for node in program.nodes for control in node.control}
    for node in program.nodes:
        if node.op_def.name != "Identity" or node.control or node in awaited:
            continue
        if node.outputs[0] in takers or node.outputs[0] not in program.fetches:
            continue
        source = producers.get(node.inputs[0])
        if source is None or is_constant(source) or part_of[source] == part_of[node]:
            continue
        others = [taker for taker in takers[node.inputs[0]] if taker is not node]
        if all(part_of[taker] != part_of[node] for taker in others):  # else it is there anyway
            device_of[node], part_of[node] = device_of[source], part_of[source]
