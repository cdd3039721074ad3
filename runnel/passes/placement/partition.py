"""Partition: one step as several parts, by device or by task, joined by Sends and Recvs.

A value goes once to each part that uses it, however many consumers it has there. The Send comes
right after the node that makes the value, so the transfer begins as soon as the value exists. A
constant is not sent: every part has its own. A variable is read on its own part, right before its
first consumer elsewhere, once for each version of the variable. A control edge that crosses becomes
the Send and Recv of a dummy value.

Each part keeps its nodes in the order of the step, and each Recv comes after its Send in that
order. So whatever a part waits for was started before, and no cycle of waiting can arise, even
where parts feed each other many times in a step.

In a loop or a branch, a Send and its Recv are where the value is made. Deadness is sent, so a Recv
is dead where its Send is. A Recv in a loop runs once in each iteration, so it waits for something
that does: a ``Merge`` of the loop in its part. A part that has none gets a *control loop*, as in
TensorFlow: a loop over a dummy value that continues as long as the predicate, which is sent to it,
says so. Values that go into or around a loop cross before its ``Enter`` or ``NextIteration``, which
placement puts with the ``Merge``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

from runnel.graph import dtypes
from runnel.graph.device_set import LogicalDevice
from runnel.graph.errors import UnimplementedError
from runnel.graph.operation import Operation
from runnel.graph.registry import get_op_def
from runnel.ops.control_flow import ENTERS
from runnel.ops.send_recv import MAY_BE_DEAD
from runnel.passes.placement.partition_frames import PartitionFrames
from runnel.passes.program.program import Node, Program, ValueInfo, is_constant
from runnel.passes.program.variable_reads import is_variable_read
from runnel.passes.structure.frames import Frame

_DUMMY = ValueInfo(dtypes.float32, ())
_T = {"T": dtypes.float32}


@dataclass(slots=True)
class Part:
    """What one device or task does of a step; ``name_of`` has the nodes that no user has made."""

    program: Program
    device_of: dict[Node, LogicalDevice] = field(default_factory=dict)
    name_of: dict[Node, str] = field(default_factory=dict)


@dataclass(slots=True)
class Partition:
    """The parts of a step by name, and the Recv of each Send."""

    parts: dict[str, Part] = field(default_factory=dict)
    recv_of: dict[Node, Node] = field(default_factory=dict)


def partition(
    program: Program,
    device_of: Mapping[Node, LogicalDevice],
    part_of: Mapping[Node, str] | None = None,
    host: LogicalDevice | None = None,
) -> Partition:
    """``program``, pruned and placed, as parts; by default one for each device.

    Fed values come from ``host``; without one, each part is fed what it takes.
    """
    if part_of is None:
        part_of = {node: device.name for node, device in device_of.items()}
    return _Partitioning(program, device_of, part_of, host).run()


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where something is, on whose behalf, and its name; the node that it tells of, if any."""

    part: str
    device: LogicalDevice
    op: Operation
    name: str
    node: Node | None = None


class _Partitioning:
    def __init__(
        self,
        program: Program,
        device_of: Mapping[Node, LogicalDevice],
        part_of: Mapping[Node, str],
        host: LogicalDevice | None,
    ) -> None:
        self._program = program
        self._device_of = device_of
        self._part_of = part_of
        self._host = host
        self._fed = {number: tensor for tensor, number in program.feeds.items()}
        self._producers = program.producers()
        self._found = Partition()
        self._copies: dict[tuple[Node, str], Node] = {}
        self._sends: dict[Node | None, list[Node]] = {None: []}
        """The Sends that come right after each node; those of fed values come first of all."""
        self._aside = {n: None for n in program.nodes if is_constant(n) or is_variable_read(n)}
        """What stands for itself anywhere: it is put where it is used."""
        self._ends: dict[Node, int] = {}
        """The dummy value that tells that a node has run."""
        self._received: dict[tuple[int, str], tuple[int, Node]] = {}
        self._reads: dict[tuple[Node, int], int] = {}
        self._version = 0
        """How many updates of variables came before."""
        self._names = {node.op.name for node in program.nodes}
        self._merges: dict[tuple[Frame, str], Node] = {}
        """What runs once in each iteration of a loop, in a part."""
        self._open: dict[Frame, list[_Origin]] = {}
        """Control loops that have yet to be told how long they go on."""
        self._frames = PartitionFrames(program, part_of)

    def run(self) -> Partition:
        program, frames = self._program, self._frames
        if self._host is not None and program.feeds:
            self._part(self._host.name).program.feeds.update(program.feeds)
        for node in frames.order:
            if node in self._aside:
                continue
            if node.op_def.name in ENTERS:
                self._read_what_enters(frames.leads_to[node])
            self._copy(node, self._origin(node))
            if node.op_def.updates or node.op_def.overwrites:
                self._version += 1
            if node.op_def.name == "LoopCond":
                for origin in self._open.pop(frames.runs_in[node], ()):
                    self._end_control_loop(node, origin)
        fetched = {self._producers.get(value) for value in program.fetches}
        used = {self._producers.get(value) for node in program.nodes for value in node.inputs}
        used.update(control for node in program.nodes for control in node.control)
        for node in self._aside:
            if node in fetched or node not in used:
                self._copy(node, self._origin(node))
        for number in dict.fromkeys(program.fetches):
            if number in self._producers:
                self._part(self._part_of[self._producers[number]]).program.fetches += (number,)
        for name, part in self._found.parts.items():
            made = part.program.nodes
            part.program.nodes = [n for own in made for n in (own, *self._sends.get(own, ()))]
            if self._host is not None and name == self._host.name:
                part.program.nodes[:0] = self._sends[None]
        return self._found

    # Nodes ----------------------------------------------------------------------------------

    def _part(self, name: str) -> Part:
        if name not in self._found.parts:
            self._found.parts[name] = Part(Program([], {}, (), self._program.infos))
        return self._found.parts[name]

    def _origin(self, node: Node, at: _Origin | None = None) -> _Origin:
        """Where ``node`` is, or where a copy of it goes that is wanted elsewhere, ``at``."""
        if at is not None and at.part != self._part_of[node]:
            return at
        return _Origin(self._part_of[node], self._device_of[node], node.op, node.op.name, node)

    def _copy(self, node: Node, at: _Origin) -> Node:
        """``node`` in the part of ``at``, with what it takes and waits for there."""
        if (node, at.part) in self._copies:
            return self._copies[node, at.part]
        frames, part = self._frames, self._part(at.part)
        if node not in frames.variables:
            self._iteration(frames.runs_in[node], at)
        inputs = tuple([self._taken(value, node, at) for value in node.inputs])
        control = dict.fromkeys([self._waited(awaited, at) for awaited in node.control])
        new = self._copies[node, at.part] = node.taking(inputs, tuple(control))
        part.program.nodes.append(new)
        part.device_of[new] = at.device
        if node in frames.variables:
            self._merges.setdefault((frames.runs_in[node], at.part), new)
        return new

    def _make(
        self,
        at: _Origin,
        kind: str,
        inputs: tuple[int, ...],
        infos: Iterable[ValueInfo],
        attrs: dict[str, Any],
        control: tuple[Node, ...] = (),
        after: list[Node] | None = None,
    ) -> Node:
        """A node that no user has made, put at the end of its part, or of ``after``."""
        name = next(n for i in count() if (n := f"{at.name}/_{i}") not in self._names)
        self._names.add(name)
        outputs = tuple([self._program.new_value(info.dtype, info.dims) for info in infos])
        node = Node(at.op, get_op_def(kind), inputs, outputs, control, attrs)
        part = self._part(at.part)
        (part.program.nodes if after is None else after).append(node)
        part.device_of[node], part.name_of[node] = at.device, name
        return node

    def _dummy(
        self, at: _Origin, control: tuple[Node, ...], after: list[Node] | None = None
    ) -> int:
        """A value that says nothing but that ``control`` has run."""
        attrs = {"dtype": dtypes.float32, "value": np.zeros((), np.float32)}
        return self._make(at, "Const", (), [_DUMMY], attrs, control, after).outputs[0]

    def _taken(self, value: int, node: Node, at: _Origin) -> int:
        """The number, in the part of ``at``, of ``value``, which ``node`` takes."""
        producer = self._producers.get(value)
        if producer is None:
            if self._host is None or self._host.name == at.part:
                self._part(at.part).program.feeds[self._fed[value]] = value
                return value
            tensor = self._fed[value]
            origin = _Origin(self._host.name, self._host, tensor.op, tensor.op.name)
            return self._received_at(at, value, origin, self._sends[None])[0]
        if is_constant(producer) or self._part_of[producer] == at.part:
            if producer in self._aside:
                self._copy(producer, self._origin(producer, at))
            return value
        self._check_sendable(node, value, producer)
        variable = self._variable(value)
        if variable is not None:
            return self._read(variable, at)
        origin = self._origin(producer)
        after = self._sends.setdefault(self._copy(producer, origin), [])
        return self._received_at(at, value, origin, after)[0]

    def _waited(self, control: Node, at: _Origin) -> Node:
        """What a node in the part of ``at`` waits for, in place of ``control``."""
        if is_constant(control) or self._part_of[control] == at.part:
            return self._copy(control, self._origin(control, at))
        origin = self._origin(control)
        copy = self._copy(control, origin)
        after = self._sends.setdefault(copy, [])
        if control not in self._ends:
            self._ends[control] = self._dummy(origin, (copy,), after)
        return self._received_at(at, self._ends[control], origin, after)[1]

    # Variables ------------------------------------------------------------------------------

    def _variable(self, value: int) -> Node | None:
        """The variable that ``value`` is a reference to, or stands for."""
        producer = self._producers.get(value)
        if producer is not None and is_variable_read(producer):
            producer = self._producers.get(producer.inputs[0])
        if producer is None or not producer.op_def.variable:
            return None
        return producer if self._program.infos[producer.outputs[0]].dtype.is_ref_dtype else None

    def _read(self, variable: Node, at: _Origin) -> int:
        """The value of ``variable`` at this point of the step, sent to the part of ``at``."""
        name, device = f"{variable.op.name}/read", self._device_of[variable]
        origin = _Origin(self._part_of[variable], device, at.op, name)
        key = variable, self._version
        if key not in self._reads:
            [handle] = self._copy(variable, self._origin(variable)).outputs
            info = self._program.infos[handle]
            info = ValueInfo(info.dtype.base_dtype, info.dims)
            read = self._make(origin, "Identity", (handle,), [info], {"T": info.dtype})
            self._reads[key] = read.outputs[0]
        sends = self._part(origin.part).program.nodes
        return self._received_at(at, self._reads[key], origin, sends)[0]

    def _read_what_enters(self, frame: Frame) -> None:
        """Reads what enters a loop when the first does: the loop may update it where it is."""
        for enter in frame.enters:
            variable, at = self._variable(enter.inputs[0]), self._origin(enter)
            if variable is not None and self._part_of[variable] != at.part:
                self._read(variable, at)

    def _check_sendable(self, node: Node, value: int, producer: Node) -> None:
        arguments = [a for a in node.op_def.inputs for _ in a.types(node.attrs)]
        handle = self._program.infos[value].dtype.base_dtype is dtypes.resource
        if handle or any(a.is_ref and v == value for a, v in zip(arguments, node.inputs)):
            raise UnimplementedError(
                None,
                node.op,
                f"{node.op.name!r} takes {producer.op.name!r} itself, not its value, but is in "
                "another part of the step, and only values are sent. Put both on one task",
            )

    # Sending and receiving ------------------------------------------------------------------

    def _received_at(
        self, at: _Origin, value: int, origin: _Origin, sends: list[Node]
    ) -> tuple[int, Node]:
        """The number that ``value`` has in the part of ``at``, and the node that gives it.

        When it is the first to ask, the value is sent, at the end of ``sends``, and received.
        """
        known = self._received.get((value, at.part))
        if known is not None:
            return known
        node, dtype = origin.node, self._program.infos[value].dtype.base_dtype
        ends = {
            "tensor_name": f"edge_{value}_{origin.name}",
            "send_device": origin.device.name,
            "send_device_incarnation": origin.device.incarnation,
            "recv_device": at.device.name,
            "client_terminated": False,
        }
        send = self._make(origin, "_Send", (value,), [], {"T": dtype, **ends}, (), sends)
        attrs = {"tensor_type": dtype, **ends}
        control: tuple[Node, ...] = ()
        if node is not None:
            self._iteration(self._frames.leads_to[node], origin)
            control = self._iteration(self._frames.leads_to[node], at)
            if self._frames.may_be_dead(node, value if value in node.outputs else None):
                attrs[MAY_BE_DEAD] = True
        at = replace(at, name=origin.name)
        info = ValueInfo(dtype, self._program.infos[value].dims)
        given = self._make(at, "_Recv", (), [info], attrs, control)
        self._found.recv_of[send] = given
        if node is not None and node.op_def.name == "LoopCond":
            # A loop has its condition in each part, where it decides as it does in a whole.
            given = self._make(at, "LoopCond", given.outputs, [info], {})
        self._received[value, at.part] = given.outputs[0], given
        return given.outputs[0], given

    # Control loops --------------------------------------------------------------------------

    def _iteration(self, frame: Frame, at: _Origin) -> tuple[Node, ...]:
        """What runs in each iteration of ``frame``, in the part of ``at``; if there are several."""
        if not self._frames.is_cut(frame):
            return ()
        if (frame, at.part) not in self._merges:
            assert frame.parent is not None
            condition = self._frames.condition(frame)
            origin = replace(at, op=condition.op, name=frame.name)
            start = self._dummy(origin, self._iteration(frame.parent, at))
            attrs = {**frame.enters[0].attrs, **_T, "is_constant": False}
            [entered] = self._make(origin, "Enter", (start,), [_DUMMY], attrs).outputs
            inputs = entered, self._program.new_value(_DUMMY.dtype, ())
            infos = _DUMMY, ValueInfo(dtypes.int32, ())
            merge = self._make(origin, "Merge", inputs, infos, {**_T, "N": 2})
            self._merges[frame, at.part] = merge
            if (condition, self._part_of[condition]) in self._copies:
                self._end_control_loop(condition, origin)
            else:
                self._open.setdefault(frame, []).append(origin)
        return (self._merges[frame, at.part],)

    def _end_control_loop(self, condition: Node, at: _Origin) -> None:
        """Has a control loop go on for as long as ``condition`` says."""
        merge = self._merges[self._frames.runs_in[condition], at.part]
        inputs = merge.outputs[0], self._taken(condition.outputs[0], condition, at)
        switch = self._make(at, "Switch", inputs, [_DUMMY, _DUMMY], _T)
        following = self._make(at, "NextIteration", switch.outputs[1:], [], _T)
        following.outputs = merge.inputs[1:]
