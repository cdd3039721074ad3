"""Bundles: sends and receives as one the values that one part owes another at the same moment.

A network's weights then arrive together, and the nodes that use them are one segment and not one
for each layer. Values belong together when they wait for the same receives, dequeues and other
blocking operations in the part that sends them. So no value is sent later than it could be, and no
part waits for itself: whatever one of the values waits for, the others wait for too.

Values inside loops and on branches stay alone: each comes in its own iteration, or is dead.
"""

from __future__ import annotations

from runnel.graph.registry import get_op_def
from runnel.ops.control_flow import CONTROL_FLOW
from runnel.ops.send_recv import MAY_BE_DEAD
from runnel.passes.placement.partition import Part, Partition
from runnel.passes.program.program import Node

_CONTROL_FLOW = 1
"""The bit of what is, or comes after, a loop or a branch."""


def bundle(partition: Partition) -> None:
    """Joins Sends, and their Recvs, in the parts of ``partition``.

    What waits for values that are now received as one waits for the same: so it is done again.
    """
    while _bundle(partition):
        pass


def _bundle(partition: Partition) -> bool:
    """True when something was joined."""
    part_of = {node: name for name, part in partition.parts.items() for node in part.program.nodes}
    groups: dict[tuple[str, str, int], list[Node]] = {}
    for name, part in partition.parts.items():
        for send, awaited in _awaited_by_sends(part).items():
            recv = partition.recv_of[send]
            if not recv.control and not recv.attrs.get(MAY_BE_DEAD):
                groups.setdefault((name, part_of[recv], awaited), []).append(send)
    replaced: dict[Node, Node] = {}
    for (source, target, _), sends in groups.items():
        if len(sends) > 1:
            recvs = [partition.recv_of.pop(send) for send in sends]
            # The last may only be sent when it is there, the first must be there for who takes it.
            send = _joined(partition.parts[source], sends, "_SendMany", place=-1)
            recv = _joined(partition.parts[target], recvs, "_RecvMany", place=0)
            partition.recv_of[send] = recv
            replaced.update(dict.fromkeys(recvs, recv))
    if replaced:
        for part in partition.parts.values():
            for node in part.program.nodes:
                if not replaced.keys().isdisjoint(node.control):
                    node.control = tuple(dict.fromkeys(replaced.get(c, c) for c in node.control))
    return bool(replaced)


def _awaited_by_sends(part: Part) -> dict[Node, int]:
    """The Sends outside loops and branches; as bits, the blocking operations each waits for."""
    found: dict[Node, int] = {}
    of_value: dict[int, int] = {}
    of_node: dict[Node, int] = {}
    state_of: dict[int, int] = {}
    waits: dict[int, int] = {}
    effects = 0
    bits = 0
    for node in part.program.nodes:
        awaited = 0
        for value in node.inputs:
            awaited |= of_value.get(value, 0)
            if value in state_of:  # it touches a variable, after all that did so before
                awaited |= waits[state_of[value]]
        for control in node.control:
            awaited |= of_node.get(control, 0)
        op_def = node.op_def
        if op_def.name == "_Send":
            if not awaited & _CONTROL_FLOW:
                found[node] = awaited
            continue
        if op_def.name in CONTROL_FLOW:
            awaited |= _CONTROL_FLOW
        elif op_def.blocking and op_def.name != "_SendMany":
            bits += 1
            awaited |= 1 << bits
        if op_def.stateful and not op_def.blocking and not op_def.variable:
            awaited |= effects
            effects = awaited
        if op_def.variable:
            state_of[node.outputs[0]] = node.outputs[0]
            waits[node.outputs[0]] = 0
        for value in node.inputs:
            if value in state_of:
                waits[state_of[value]] |= awaited
                for output in node.outputs:
                    if part.program.infos[output].dtype.is_ref_dtype:
                        state_of[output] = state_of[value]
        of_node[node] = awaited
        for value in node.outputs:
            of_value[value] = awaited
    return found


def _joined(part: Part, nodes: list[Node], kind: str, place: int) -> Node:
    """One node in place of ``nodes``: where the first of them was, or the last."""
    first, gone = nodes[0], set(nodes)
    there = [node for node in part.program.nodes if node in gone][place]
    types = [node.attrs["T" if kind == "_SendMany" else "tensor_type"] for node in nodes]
    attrs = {key: value for key, value in first.attrs.items() if key not in ("T", "tensor_type")}
    attrs["T" if kind == "_SendMany" else "tensor_types"] = types
    joined = Node(
        first.op,
        get_op_def(kind),
        tuple([value for node in nodes for value in node.inputs]),
        tuple([value for node in nodes for value in node.outputs]),
        (),
        attrs,
    )
    part.program.nodes = [
        joined if node is there else node
        for node in part.program.nodes
        if node is there or node not in gone
    ]
    part.device_of[joined] = part.device_of[first]
    part.name_of[joined] = part.name_of[first]
    return joined
