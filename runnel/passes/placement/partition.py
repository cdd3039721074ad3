"""Partition: edges between devices become Send and Recv.

A value goes to each device that uses it once, however many consumers it has there. Send and Recv
stand right after the node that makes the value, so that the transfer begins as soon as the value
exists. A constant is not sent: every device has its own.

The program stays one list in one order. Each device runs its part of it, and all follow the same
order, so whatever a part waits for has been started before: no cycle of waiting can arise, also
where devices feed each other many times in a step. A control edge between devices needs no
message in one process, where order says everything; it is kept as it is here, and appears as a
Send and Recv of a dummy value in ``RunMetadata.partition_graphs``.

In a loop or a branch that spans devices, a pair is where the value is made: it is there for each
iteration, and a Recv is dead where its Send is. What goes into or around a loop crosses before its
``Enter`` or ``NextIteration``, which placement puts with the ``Merge``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Tensor
from runnel.ops.send_recv import recv_op, send_op
from runnel.passes.placement.kernel_devices import follows_values
from runnel.passes.placement.placement import Placement
from runnel.passes.program.program import Node, Program
from runnel.passes.structure.structured import nested_nodes, structure_of, touched_by

INCARNATION = 1
_READS = frozenset({"Identity", "ReadVariableOp"})


class NodeDevices(dict[Node, LogicalDevice]):
    """The device of each node; fed values come from ``host``, and fetched ones go there."""

    def __init__(self, host: LogicalDevice) -> None:
        super().__init__()
        self.host = host


@dataclass(slots=True)
class Partition:
    """A program with Sends and Recvs, and the device of each of its nodes."""

    program: Program
    device_of: NodeDevices
    recv_of: dict[Node, Node] = field(default_factory=dict)
    """The Recv of each Send."""

    @property
    def devices(self) -> list[LogicalDevice]:
        """The devices that have something to run."""
        return list(dict.fromkeys(self.device_of.values()))


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


def devices_of_nodes(program: Program, placement: Placement) -> NodeDevices:
    """The device of each node; one that reads a variable is where the variable is."""
    variables: dict[int, LogicalDevice] = {}
    found = NodeDevices(placement.devices.host)
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


def partition(program: Program, placement: Placement) -> Partition:
    """``program`` with a Send and a Recv for each value and each other device that uses it."""
    return partition_nodes(program, devices_of_nodes(program, placement))


def partition_nodes(program: Program, device_of: NodeDevices) -> Partition:
    """:func:`partition`, where the device of each node is known.

    ``program`` may also be one inside a loop or conditional; what it is fed is taken to be with the
    host, from where a transfer brings it, wherever it really is.
    """
    crossing = _crossings(program, device_of)
    if not crossing:
        return Partition(program, device_of)
    builder = _Builder(program, device_of, crossing)
    builder.send_all(None, program.feeds.values())
    for node in program.nodes:
        builder.add(node)
        builder.send_all(node, node.outputs)
    return builder.result()


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A value on another device: its number there, and the first consumer."""

    received: int
    consumer: Node


Crossings = dict[int, dict[LogicalDevice, _Arrival]]


def _crossings(program: Program, device_of: NodeDevices) -> Crossings:
    """For each value the other devices that use it."""
    made_by: dict[int, Node | None] = dict.fromkeys(program.feeds.values())
    for node in program.nodes:
        made_by.update(dict.fromkeys(node.outputs, node))
    crossing: Crossings = {}
    for node in program.nodes:
        destination = device_of[node]
        for value in node.inputs:
            producer = made_by[value]
            if producer is None:
                source = device_of.host
            elif producer.op_def.variable or is_constant(producer):
                continue
            else:
                source = device_of[producer]
            if source is destination or destination in crossing.get(value, ()):
                continue
            info = program.infos[value]
            received = program.new_value(replace(info, dtype=info.dtype.base_dtype))
            crossing.setdefault(value, {})[destination] = _Arrival(received, node)
    return crossing


def is_constant(node: Node) -> bool:
    """True for a constant that every device may have for itself."""
    return node.op_def.name == "Const" and not node.control


class _Builder:
    def __init__(self, program: Program, device_of: NodeDevices, crossing: Crossings) -> None:
        self._program = program
        self._device_of = device_of
        self._crossing = crossing
        self._nodes: list[Node] = []
        self._devices = NodeDevices(device_of.host)
        self._moved: dict[Node, Node] = {}
        self._recv_of: dict[Node, Node] = {}
        self._names = {
            number: fed.op.name for fed, number in program.feeds.items() if isinstance(fed, Tensor)
        }
        self._variables: dict[int, str] = {}

    def add(self, node: Node) -> None:
        device = self._device_of[node]
        if node.op_def.variable:
            self._variables[node.outputs[0]] = node.op.name
        elif node.op_def.name == "Identity" and node.inputs[0] in self._variables:
            self._names[node.outputs[0]] = f"{self._variables[node.inputs[0]]}/read"
        inputs = tuple([self._taken(value, device) for value in node.inputs])
        new = node
        if inputs != node.inputs or any(c in self._moved for c in node.control):
            control = tuple(self._moved.get(c, c) for c in node.control)
            new = Node(node.op, node.op_def, inputs, node.outputs, control, node.attrs)
            self._moved[node] = new
        self._nodes.append(new)
        self._devices[new] = device

    def _taken(self, value: int, device: LogicalDevice) -> int:
        """The number of ``value`` on ``device``."""
        arrival = self._crossing.get(value, {}).get(device)
        return value if arrival is None else arrival.received

    def send_all(self, producer: Node | None, values: Iterable[int]) -> None:
        source = self._device_of.host if producer is None else self._device_of[producer]
        for value in values:
            for destination, arrival in self._crossing.get(value, {}).items():
                self._send(producer, value, source, destination, arrival)

    def _send(
        self,
        producer: Node | None,
        value: int,
        source: LogicalDevice,
        destination: LogicalDevice,
        arrival: _Arrival,
    ) -> None:
        dtype = self._program.infos[arrival.received].dtype
        name = self._names.get(value) or (producer.op.name if producer else "fed")
        ends = {
            "tensor_name": f"edge_{value}_{name}",
            "send_device": source.name,
            "send_device_incarnation": INCARNATION,
            "recv_device": destination.name,
            "client_terminated": False,
        }
        consumer = arrival.consumer
        op = producer.op if producer is not None else consumer.op
        send = Node(op, send_op, (value,), (), (), {"T": dtype, **ends})
        attrs = {"tensor_type": dtype, **ends}
        recv = Node(consumer.op, recv_op, (), (arrival.received,), (send,), attrs)
        self._nodes += [send, recv]
        self._devices[send], self._devices[recv] = source, destination
        self._recv_of[send] = recv

    def result(self) -> Partition:
        program = self._program
        whole = Program(self._nodes, program.feeds, program.fetches, program.infos)
        return Partition(whole, self._devices, self._recv_of)
