"""RunMetadata: what a step did, op by op and device by device, for TensorBoard and the timeline.

A traced step is interpreted, so that each operation has a time of its own. Where compiling is
forced (by ``global_jit_level``, or on an accelerator) a compiled segment has one entry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation
from runnel.passes.program.program import Node

# name, label, start, end, the outputs' shapes and sizes in bytes; times in nanoseconds
_Record = tuple[str, str, int, int, list[tuple[tuple[int, ...], int]]]


class StepTracer:
    """Observes a step and writes its StepStats."""

    def __init__(self, device_of: Callable[[Operation], LogicalDevice]) -> None:
        self._device_of = device_of
        self._records: dict[LogicalDevice, list[_Record]] = {}
        self._others: list[bytes] = []
        self._metadata: list[bytes] = []
        # perf_counter has no fixed origin; the trace is in microseconds since the epoch.
        self._origin = time.time_ns() - time.perf_counter_ns()

    def operation(self, node: Node, start: int, end: int, outputs: Sequence[Any]) -> None:
        """An operation was interpreted."""
        label = f"{node.op.name} = {node.op_def.name}({_names(node.op)})"
        self._add(node.op, node.op.name, label, start, end, outputs[: len(node.outputs)])

    def segment(self, nodes: Sequence[Node], start: int, end: int, outputs: Sequence[Any]) -> None:
        """A compiled segment ran; it is named after its last operation."""
        op = nodes[-1].op
        names = ", ".join(node.op.name for node in nodes)
        label = f"{op.name}/compiled = XlaRun({names})"
        self._add(op, f"{op.name}/compiled", label, start, end, outputs)

    def _add(
        self, op: Operation, name: str, label: str, start: int, end: int, outputs: Sequence[Any]
    ) -> None:
        shapes = [(np.shape(value), getattr(value, "nbytes", 0)) for value in outputs]
        records = self._records.setdefault(self._device_of(op), [])
        records.append((name, label, start, end, shapes))

    def add_stats(self, step_stats: bytes) -> None:
        """Takes over what another task has observed: a serialized ``StepStats``."""
        self._others.append(step_stats)

    def add_metadata(self, run_metadata: bytes) -> None:
        """Takes over what another process has observed: a serialized ``RunMetadata``."""
        self._metadata.append(run_metadata)

    def fill(self, run_metadata: Any) -> None:
        """Writes what was observed into a ``RunMetadata``."""
        for device, records in self._records.items():
            self._fill_device(run_metadata.step_stats.dev_stats.add(), device, records)
        for metadata in self._metadata:
            run_metadata.MergeFromString(metadata)
        for stats in self._others:
            run_metadata.step_stats.MergeFromString(stats)

    def _fill_device(self, stats_of: Any, device: LogicalDevice, records: list[_Record]) -> None:
        stats_of.device = device.name
        for name, label, start, end, shapes in records:
            stats = stats_of.node_stats.add()
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
