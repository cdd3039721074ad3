"""The graph of a step, one for each device, for ``RunMetadata.partition_graphs``.

These show the step as it was described, pruned and placed, before it is rewritten and compiled. An
edge between devices is a ``_Send`` and a ``_Recv``, one pair for each value and destination; a
control edge sends a dummy value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runnel.graph.device_set import LogicalDevice
from runnel.graph.graph_def import GRAPH_DEF_VERSION, operation_to_node_def
from runnel.graph.operation import Operation, Tensor
from runnel.passes.partition import INCARNATION


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

    def build(self) -> None:
        for tensor in self._feeds:
            self._add_placeholder(tensor)
        for op in self._operations:
            device = self._device_of(op)
            node = operation_to_node_def(op)
            node.device = device.name
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
        return self._transfer(text, name, source, device, dtype)

    def _control(self, control: Operation, device: LogicalDevice) -> str:
        source = self._device_of(control)
        if source is device:
            return f"^{control.name}"
        key = f"^{control.name}"
        if (key, device) not in self._received:
            dummy = self._graph(source).node.add(
                name=f"{control.name}/ctrl/{self._next()}", op="Const", device=source.name
            )
            dummy.input.append(key)
            dummy.attr["dtype"].type = 1  # DT_FLOAT
            dummy.attr["value"].tensor.dtype = 1
            dummy.attr["value"].tensor.tensor_shape.SetInParent()
            dummy.attr["value"].tensor.float_val.append(0.0)
            self._received[key, device] = self._transfer(
                dummy.name, control.name, source, device, 1
            )
        return f"^{self._received[key, device]}"

    def _transfer(
        self, text: str, name: str, source: LogicalDevice, device: LogicalDevice, dtype: int
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
        return recv.name

    def _next(self) -> str:
        self._number += 1
        return f"_{self._number - 1}"
