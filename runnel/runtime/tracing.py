"""RunMetadata: what a step did, op by op, for TensorBoard and the timeline; and its graph.

A traced step is interpreted, so that each operation has a time of its own. Where compiling is
forced (by ``global_jit_level``, or on an accelerator) a compiled segment has one entry.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from runnel.graph.operation import Operation, Tensor
from runnel.passes.program import Node
from runnel.runtime.devices import default_device_kind


class StepTracer:
    """Observes a step and writes its StepStats."""

    def __init__(self) -> None:
        # (name, label, start, end, the outputs' shapes and sizes in bytes); times in nanoseconds
        self._records: list[tuple[str, str, int, int, list[tuple[tuple[int, ...], int]]]] = []
        # perf_counter has no fixed origin; the trace is in microseconds since the epoch.
        self._origin = time.time_ns() - time.perf_counter_ns()

    def operation(self, node: Node, start: int, end: int, outputs: Sequence[Any]) -> None:
        """An operation was interpreted."""
        label = f"{node.op.name} = {node.op_def.name}({_names(node.op)})"
        self._add(node.op.name, label, start, end, outputs[: len(node.outputs)])

    def segment(self, nodes: Sequence[Node], start: int, end: int, outputs: Sequence[Any]) -> None:
        """A compiled segment ran; it is named after its last operation."""
        last = nodes[-1].op.name
        names = ", ".join(node.op.name for node in nodes)
        self._add(f"{last}/compiled", f"{last}/compiled = XlaRun({names})", start, end, outputs)

    def _add(self, name: str, label: str, start: int, end: int, outputs: Sequence[Any]) -> None:
        shapes = [(np.shape(value), getattr(value, "nbytes", 0)) for value in outputs]
        self._records.append((name, label, start, end, shapes))

    def fill(self, run_metadata: Any) -> None:
        """Writes what was observed into a ``RunMetadata``."""
        device = run_metadata.step_stats.dev_stats.add()
        device.device = f"/job:localhost/replica:0/task:0/device:{default_device_kind()}:0"
        for name, label, start, end, shapes in self._records:
            stats = device.node_stats.add()
            stats.node_name = name
            stats.timeline_label = label
            stats.all_start_micros = (self._origin + start) // 1000
            stats.op_end_rel_micros = stats.all_end_rel_micros = max((end - start) // 1000, 1)
            for slot, (shape, size) in enumerate(shapes):
                output = stats.output.add()
                output.slot = slot
                description = output.tensor_description
                for dimension in shape:
                    description.shape.dim.add().size = dimension
                description.allocation_description.requested_bytes = size


def _names(op: Operation) -> str:
    return ", ".join(tensor.name for tensor in op.inputs)


def add_partition_graph(
    run_metadata: Any, operations: Iterable[Operation], feeds: Iterable[Tensor]
) -> None:
    """Adds the graph of a step, pruned to what it runs, to ``run_metadata.partition_graphs``.

    A tensor that is fed has a placeholder in place of the operation that would compute it.
    """
    from runnel.graph.graph_def import GRAPH_DEF_VERSION, operation_to_node_def

    graph = run_metadata.partition_graphs.add()
    graph.versions.producer = GRAPH_DEF_VERSION
    members = dict.fromkeys(operations)
    fed: dict[Tensor, str] = {}
    for tensor in feeds:
        op, index = tensor.op, tensor.value_index
        # Its own name, unless the operation is there for another of its outputs.
        alone = index == 0 and op not in members
        fed[tensor] = op.name if alone else f"{op.name}/fed_{index}"
        placeholder = graph.node.add(name=fed[tensor], op="Placeholder")
        placeholder.attr["dtype"].type = tensor.dtype.base_dtype.as_datatype_enum
        placeholder.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
    for op in members:
        node = operation_to_node_def(op)
        for position, tensor in enumerate(op.inputs):
            if tensor in fed:
                node.input[position] = fed[tensor]
        for control in op.control_inputs:
            if control not in members:
                node.input.remove(f"^{control.name}")
        graph.node.append(node)
