"""Partition: edges between devices become Send and Recv.

A value goes to each device that uses it once, however many consumers it has there. Send and Recv
stand right after the node that makes the value, so that the transfer begins as soon as the value
exists. A constant is not sent: every device has its own.

The program stays one list in one order. Each device runs its part of it, and all follow the same
order, so whatever a part waits for has been started before: no cycle of waiting can arise, also
where devices feed each other many times in a step. A control edge between devices needs no
message in one process, where order says everything; it is kept as it is here, and appears as a
Send and Recv of a dummy value in ``RunMetadata.partition_graphs``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from runnel.graph.device_set import LogicalDevice
from runnel.graph.registry import get_op_def
from runnel.passes.kernel_devices import follows_values
from runnel.passes.placement import Placement
from runnel.passes.program import Node, Program, ValueInfo
from runnel.passes.structured import nested_nodes, structure_of, touched_by

INCARNATION = 1
_READS = frozenset({"Identity", "ReadVariableOp"})


@dataclass(slots=True)
class Partition:
    """A program with Sends and Recvs, and the device of each of its nodes."""

    program: Program
    device_of: dict[Node, LogicalDevice]
    host: LogicalDevice
    """Where fed values come from and fetched ones go."""
    recv_of: dict[Node, Node] = field(default_factory=dict)
    """The Recv of each Send."""

    @property
    def devices(self) -> list[LogicalDevice]:
        """The devices that have something to run."""
        return list(dict.fromkeys(self.device_of.values()))


def spans_devices(program: Program, placement: Placement) -> bool:
    """True when a loop or conditional of ``program`` computes on more than one device."""
    return any(
        len(_inside(node, placement)) > 1
        for node in program.nodes
        if structure_of(node) is not None
    )


def _inside(node: Node, placement: Placement) -> list[LogicalDevice]:
    """The devices that a loop or conditional computes on; one at least.

    What only passes values on has no say, nor has a read of a variable: its value is brought.
    """
    found: dict[LogicalDevice, None] = {}
    for inner in nested_nodes([node]):
        if structure_of(inner) is not None or inner.op_def.variable or follows_values(inner.op):
            continue
        if inner.op_def.name not in _READS:
            found[placement.device_of(inner.op)] = None
    for variable in touched_by(node).writes:
        found[placement.device_of(variable)] = None
    return list(found) or [placement.device_of(node.op)]


def devices_of_nodes(program: Program, placement: Placement) -> dict[Node, LogicalDevice]:
    """The device of each node; one that reads a variable is where the variable is."""
    variables: dict[int, LogicalDevice] = {}
    found: dict[Node, LogicalDevice] = {}
    for node in program.nodes:
        if structure_of(node) is not None:
            found[node] = _inside(node, placement)[0]
            continue
        device = placement.device_of(node.op)
        if node.op_def.variable:
            variables[node.outputs[0]] = device
        elif node.op_def.name == "Identity" and node.inputs[0] in variables:
            device = variables[node.inputs[0]]  # a read, made for one of its consumers
        found[node] = device
    return found


def partition(program: Program, placement: Placement) -> Partition:
    """``program`` with a Send and a Recv for each value and each other device that uses it."""
    device_of = devices_of_nodes(program, placement)
    host = placement.devices.host
    made_by: dict[int, Node | None] = dict.fromkeys(program.feeds.values())
    for node in program.nodes:
        made_by.update(dict.fromkeys(node.outputs, node))
    crossing = _crossings(program, device_of, made_by, host)
    if not crossing:
        return Partition(program, device_of, host)
    builder = _Builder(program, device_of, host)
    builder.send_all(None, program.feeds.values(), crossing)
    for node in program.nodes:
        builder.add(node)
        builder.send_all(node, node.outputs, crossing)
    return builder.result()


def _crossings(
    program: Program,
    device_of: dict[Node, LogicalDevice],
    made_by: dict[int, Node | None],
    host: LogicalDevice,
) -> dict[int, dict[LogicalDevice, Node]]:
    """For each value the other devices that use it, each with the first consumer there."""
    crossing: dict[int, dict[LogicalDevice, Node]] = {}
    for node in program.nodes:
        destination = device_of[node]
        for value in node.inputs:
            producer = made_by[value]
            if producer is None:
                source = host
            elif producer.op_def.variable or is_constant(producer):
                continue
            else:
                source = device_of[producer]
            if source is not destination:
                crossing.setdefault(value, {}).setdefault(destination, node)
    return crossing


def is_constant(node: Node) -> bool:
    """True for a constant that every device may have for itself."""
    return node.op_def.name == "Const" and not node.control


class _Builder:
    def __init__(
        self, program: Program, device_of: dict[Node, LogicalDevice], host: LogicalDevice
    ) -> None:
        self._program = program
        self._device_of = device_of
        self._host = host
        self._nodes: list[Node] = []
        self._devices: dict[Node, LogicalDevice] = {}
        self._moved: dict[Node, Node] = {}
        self._received: dict[tuple[int, LogicalDevice], int] = {}
        self._recv_of: dict[Node, Node] = {}
        self._names = {number: tensor.op.name for tensor, number in program.feeds.items()}
        self._variables: dict[int, str] = {}

    def add(self, node: Node) -> None:
        device = self._device_of[node]
        if node.op_def.variable:
            self._variables[node.outputs[0]] = node.op.name
        elif node.op_def.name == "Identity" and node.inputs[0] in self._variables:
            self._names[node.outputs[0]] = f"{self._variables[node.inputs[0]]}/read"
        inputs = tuple([self._received.get((value, device), value) for value in node.inputs])
        new = node
        if inputs != node.inputs or any(c in self._moved for c in node.control):
            control = tuple(self._moved.get(c, c) for c in node.control)
            new = Node(node.op, node.op_def, inputs, node.outputs, control, node.attrs)
            self._moved[node] = new
        self._nodes.append(new)
        self._devices[new] = device

    def send_all(
        self,
        producer: Node | None,
        values: Iterable[int],
        crossing: dict[int, dict[LogicalDevice, Node]],
    ) -> None:
        source = self._host if producer is None else self._device_of[producer]
        for value in values:
            for destination, consumer in crossing.get(value, {}).items():
                self._send(producer, value, source, destination, consumer)

    def _send(
        self,
        producer: Node | None,
        value: int,
        source: LogicalDevice,
        destination: LogicalDevice,
        consumer: Node,
    ) -> None:
        info = self._program.infos[value]
        dtype = info.dtype.base_dtype
        name = self._names.get(value) or (producer.op.name if producer else "fed")
        ends = {
            "tensor_name": f"edge_{value}_{name}",
            "send_device": source.name,
            "send_device_incarnation": INCARNATION,
            "recv_device": destination.name,
            "client_terminated": False,
        }
        op = producer.op if producer is not None else consumer.op
        send = Node(op, get_op_def("_Send"), (value,), (), (), {"T": dtype, **ends})
        received = self._program.new_value(ValueInfo(dtype, info.dims))
        attrs = {"tensor_type": dtype, **ends}
        recv = Node(consumer.op, get_op_def("_Recv"), (), (received,), (send,), attrs)
        self._nodes += [send, recv]
        self._devices[send], self._devices[recv] = source, destination
        self._recv_of[send] = recv
        self._received[value, destination] = received

    def result(self) -> Partition:
        program = self._program
        whole = Program(self._nodes, program.feeds, program.fetches, program.infos)
        return Partition(whole, self._devices, self._host, self._recv_of)
