"""The graph of a step, one for each device, for ``RunMetadata.partition_graphs``.

These show the step as it was described, pruned and placed, before it is rewritten and compiled. An
edge between devices is a ``_Send`` and a ``_Recv``, one pair for each value and destination; a
control edge sends a dummy value.

A ``_Recv`` in a loop runs once in each iteration, so it waits for something that does: a ``Merge``
of the loop on its device. A device that has none gets a *control loop*, as in TensorFlow: a loop
over a dummy value that goes on for as long as the predicate, which is sent to it, says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel.graph.device_set import LogicalDevice
from runnel.graph.graph_def import GRAPH_DEF_VERSION, operation_to_node_def
from runnel.graph.operation import Operation, Tensor
from runnel.ops.control_flow import ENTERS, MERGES
from runnel.passes.placement.partition import INCARNATION
from runnel.passes.program.prune import prune
from runnel.passes.structure.frames import Frame, Frames

_FLOAT = 1
"""DT_FLOAT, the type of dummy values."""


def add_partition_graphs(
    run_metadata: Any,
    operations: Iterable[Operation],
    feeds: Iterable[Tensor],
    device_of: Callable[[Operation], LogicalDevice],
    host: LogicalDevice,
) -> None:
    """Adds a graph for each device that has something to run."""
    _Graphs(run_metadata, list(operations), list(feeds), device_of, host).build()


class _Graphs:
    def __init__(
        self,
        run_metadata: Any,
        operations: list[Operation],
        feeds: list[Tensor],
        device_of: Callable[[Operation], LogicalDevice],
        host: LogicalDevice,
    ) -> None:
        self._metadata = run_metadata
        self._operations = operations
        self._members = set(operations)
        self._device_of = device_of
        self._host = host
        self._feeds = feeds
        self._fed: dict[Tensor, str] = {}
        self._graphs: dict[LogicalDevice, Any] = {}
        self._received: dict[tuple[str, LogicalDevice], str] = {}
        self._number = 0
        self._frame_of: dict[Operation, Frame] = {}
        """The loop of each operation's outputs, for those in one."""
        self._conditions: dict[Frame, Operation] = {}
        self._merges: dict[tuple[Frame, LogicalDevice], str] = {}
        """What runs once in each iteration of a loop, on a device."""
        if any(op.op_def.name in ENTERS for op in operations):
            self._find_loops()

    def _find_loops(self) -> None:
        program = prune((), self._operations, self._feeds)
        frames = Frames(program)
        for node in program.nodes:
            frame = frames.leads_to[node]
            if frame is frames.outermost:
                continue
            self._frame_of[node.op] = frame
            if node.op_def.name == "LoopCond":
                self._conditions[frame] = node.op
            elif any(t.op.op_def.name in ENTERS for t in node.op.inputs):
                if node.op_def.name in MERGES:  # of a loop variable, not of a conditional
                    self._merges.setdefault((frame, self._device_of(node.op)), node.op.name)

    def build(self) -> None:
        for tensor in self._feeds:
            self._add_placeholder(tensor)
        for op in self._operations:
            device = self._device_of(op)
            node = operation_to_node_def(op)
            node.device = device.name
            if "_class" in node.attr:  # what it was placed with may be in no graph, if it is fed
                del node.attr["_class"]
            del node.input[:]
            for tensor in op.inputs:
                node.input.append(self._input(tensor, device))
            for control in op.control_inputs:
                if control in self._members:
                    node.input.append(self._control(control, device))
            self._graph(device).node.append(node)

    def _graph(self, device: LogicalDevice) -> Any:
        graph = self._graphs.get(device)
        if graph is None:
            graph = self._graphs[device] = self._metadata.partition_graphs.add()
            graph.versions.producer = GRAPH_DEF_VERSION
        return graph

    def _add_placeholder(self, tensor: Tensor) -> None:
        op, index = tensor.op, tensor.value_index
        # Its own name, unless the operation is there for another of its outputs.
        alone = index == 0 and op not in self._members
        name = self._fed[tensor] = op.name if alone else f"{op.name}/fed_{index}"
        node = self._graph(self._host).node.add(name=name, op="Placeholder", device=self._host.name)
        node.attr["dtype"].type = tensor.dtype.base_dtype.as_datatype_enum
        node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())

    def _input(self, tensor: Tensor, device: LogicalDevice) -> str:
        op, index = tensor.op, tensor.value_index
        if tensor in self._fed:
            source, name, index = self._host, self._fed[tensor], 0
        else:
            source, name = self._device_of(op), op.name
        text = name if index == 0 else f"{name}:{index}"
        if source is device:
            return text
        dtype = tensor.dtype.base_dtype.as_datatype_enum
        frame = None if tensor in self._fed else self._frame_of.get(op)
        return self._transfer(text, name, source, device, dtype, frame)

    def _control(self, control: Operation, device: LogicalDevice) -> str:
        source = self._device_of(control)
        if source is device:
            return f"^{control.name}"
        key = f"^{control.name}"
        if (key, device) not in self._received:
            dummy = self._dummy(f"{control.name}/ctrl/{self._next()}", source, key)
            self._received[key, device] = self._transfer(
                dummy, control.name, source, device, _FLOAT, self._frame_of.get(control)
            )
        return f"^{self._received[key, device]}"

    def _dummy(self, name: str, device: LogicalDevice, awaited: str | None) -> str:
        """A constant that stands for nothing but that ``awaited`` has run."""
        dummy = self._graph(device).node.add(name=name, op="Const", device=device.name)
        if awaited is not None:
            dummy.input.append(awaited)
        dummy.attr["dtype"].type = _FLOAT
        dummy.attr["value"].tensor.dtype = _FLOAT
        dummy.attr["value"].tensor.tensor_shape.SetInParent()
        dummy.attr["value"].tensor.float_val.append(0.0)
        return name

    def _iteration(self, frame: Frame, device: LogicalDevice) -> str:
        """A Merge that runs in each iteration of ``frame`` on ``device``; perhaps of a new loop."""
        known = self._merges.get((frame, device))
        if known is not None:
            return known
        condition = self._conditions[frame]
        prefix = f"{condition.name}/{self._next()}"
        awaited = None
        if frame.parent is not None and frame.parent.parent is not None:
            awaited = f"^{self._iteration(frame.parent, device)}"
        parts = {name: f"{prefix}/{name}" for name in ("Enter", "Merge", "Switch", "NextIteration")}
        self._merges[frame, device] = parts["Merge"]
        graph = self._graph(device)
        start = self._dummy(f"{prefix}/Const", device, awaited)
        inputs = {
            "Enter": (start,),
            "Merge": (parts["Enter"], parts["NextIteration"]),
            "Switch": (parts["Merge"], self._input(condition.outputs[0], device)),
            "NextIteration": (f"{parts['Switch']}:1",),
        }
        for op, name in parts.items():
            node = graph.node.add(name=name, op=op, device=device.name, input=inputs[op])
            node.attr["T"].type = _FLOAT
            if op == "Enter":
                node.attr["frame_name"].s = frame.name.encode()
                node.attr["is_constant"].b = False
                node.attr["parallel_iterations"].i = frame.enters[0].attrs["parallel_iterations"]
            elif op == "Merge":
                node.attr["N"].i = 2
        return parts["Merge"]

    def _transfer(
        self,
        text: str,
        name: str,
        source: LogicalDevice,
        device: LogicalDevice,
        dtype: int,
        frame: Frame | None = None,
    ) -> str:
        """The name of the Recv on ``device`` of what is called ``text`` on ``source``."""
        known = self._received.get((text, device))
        if known is not None:
            return known
        edge = f"edge_{self._number}_{name}"
        send = self._graph(source).node.add(
            name=f"{name}/{self._next()}", op="_Send", device=source.name
        )
        send.input.append(text)
        send.attr["T"].type = dtype
        recv = self._graph(device).node.add(
            name=f"{name}/{self._next()}", op="_Recv", device=device.name
        )
        recv.attr["tensor_type"].type = dtype
        for node in (send, recv):
            node.attr["tensor_name"].s = edge.encode()
            node.attr["send_device"].s = source.name.encode()
            node.attr["send_device_incarnation"].i = INCARNATION
            node.attr["recv_device"].s = device.name.encode()
            node.attr["client_terminated"].b = False
        self._received[text, device] = recv.name
        if frame is not None:
            recv.input.append(f"^{self._iteration(frame, device)}")
        return recv.name

    def _next(self) -> str:
        self._number += 1
        return f"_{self._number - 1}"
