"""RunMetadata: what a step did, device by device, for TensorBoard and the timeline.

A traced step runs in its usual tiers. Each interpreted operation has an entry; a compiled segment
has one, of type ``XlaRun``, that lists its operations. The step waits for each, so that times are
true: devices do not overlap as they do in an untraced step. Transfers between devices, or between
tasks, are on a device of their own, as in TensorFlow: ``.../memcpy``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation
from runnel.passes.program.program import Node
from runnel.passes.structure.structured import operation_names
from runnel.runtime.schedule.task_transfers import Sized, fill_ends, fill_outputs, join_ends
from runnel.runtime.state.observer import SegmentRun, TransferRun


@dataclass(frozen=True, slots=True)
class _Record:
    """Something that took time; in nanoseconds of ``perf_counter_ns``."""

    name: str
    label: str
    start: int
    end: int
    outputs: list[Sized]
    taken_bytes: int = 0
    updated_bytes: int = 0
    needed_bytes: int = 0


class StepTracer:
    """Observes a step and writes its StepStats."""

    def __init__(
        self, device_of: Callable[[Operation], LogicalDevice], by_operation: bool = False
    ) -> None:
        """``by_operation`` has each operation run by itself, wherever it can be interpreted."""
        self.by_operation = by_operation
        self._device_of = device_of
        self._records: dict[str, list[_Record]] = {}
        self._others: list[bytes] = []
        self._metadata: list[bytes] = []
        self._departures: dict[str, tuple[int, list[Sized]]] = {}
        self._arrivals: dict[str, int] = {}
        # perf_counter has no fixed origin; the trace is in microseconds since the epoch.
        self._origin = time.time_ns() - time.perf_counter_ns()

    def operation(self, node: Node, start: int, end: int, outputs: Sequence[Any]) -> None:
        """An operation was interpreted."""
        op = node.op
        label = f"{op.name} = {node.op_def.name}({_names(op)})"
        record = _Record(op.name, label, start, end, _sized(outputs[: len(node.outputs)]))
        self._add(self._device_of(op).name, record)

    def segment(self, run: SegmentRun) -> None:
        """A compiled segment ran; it is named after its last operation."""
        op = run.nodes[-1].op
        name = f"{op.name}/compiled"
        record = _Record(
            name,
            f"{name} = XlaRun({', '.join(operation_names(run.nodes))})",
            run.start,
            run.end,
            _sized(run.outputs),
            run.taken_bytes,
            run.updated_bytes,
            run.needed_bytes,
        )
        self._add(self._device_of(op).name, record)

    def transfer(self, run: TransferRun) -> None:
        """A value was moved to another device."""
        source = run.source
        if isinstance(source, Operation):
            source = self._device_of(source).name
        kind = f"MEMCPY{_side(source)}to{_side(run.destination)}"
        name = f"{run.tensor}:{kind}"
        label = f"{name} = {kind}({run.tensor}) from {source} to {run.destination}"
        record = _Record(name, label, run.start, run.end, _sized([run.value]))
        self._add(f"{run.destination}/memcpy", record)

    def departed(self, key: str, when: int, values: Sequence[Any]) -> None:
        """Values left for another task under a rendezvous key."""
        self._departures[key] = when, _sized(values)

    def came(self, arrivals: Mapping[str, int]) -> None:
        """Values came from another task, under these keys at these times."""
        self._arrivals.update(arrivals)

    def _add(self, device: str, record: _Record) -> None:
        self._records.setdefault(device, []).append(record)

    def add_stats(self, step_stats: bytes) -> None:
        """Takes over what another task has observed: a serialized ``StepStats``."""
        self._others.append(step_stats)

    def add_metadata(self, run_metadata: bytes) -> None:
        """Takes over what another process has observed: a serialized ``RunMetadata``."""
        self._metadata.append(run_metadata)

    def fill(self, run_metadata: Any) -> None:
        """Writes what was observed, here and elsewhere, into a ``RunMetadata``."""
        self.fill_part(run_metadata)
        join_ends(run_metadata.step_stats)

    def fill_part(self, run_metadata: Any) -> None:
        """Writes what was observed for a master, who joins what left here and came elsewhere."""
        for device, records in self._records.items():
            stats_of = run_metadata.step_stats.dev_stats.add(device=device)
            for record in records:
                self._fill_node(stats_of.node_stats.add(), record)
        for metadata in self._metadata:
            run_metadata.MergeFromString(metadata)
        for stats in self._others:
            run_metadata.step_stats.MergeFromString(stats)
        fill_ends(run_metadata.step_stats, self._departures, self._arrivals, self._origin)

    def _fill_node(self, stats: Any, record: _Record) -> None:
        stats.node_name = record.name
        stats.timeline_label = record.label
        stats.all_start_micros = (self._origin + record.start) // 1000
        taken = max((record.end - record.start) // 1000, 1)
        stats.op_end_rel_micros = stats.all_end_rel_micros = taken
        fill_outputs(stats, record.outputs)
        made = sum(size for _, size in record.outputs)
        if record.taken_bytes:
            stats.referenced_tensor.add(requested_bytes=record.taken_bytes)
        if record.updated_bytes:
            stats.memory_stats.persistent_memory_size = record.updated_bytes
        if record.needed_bytes:
            needed = record.needed_bytes
            stats.memory.add(allocator_name="xla", total_bytes=needed, peak_bytes=needed)
            stats.memory_stats.temp_memory_size = max(needed - made, 0)


def _sized(values: Sequence[Any]) -> list[Sized]:
    return [(np.shape(value), getattr(value, "nbytes", 0)) for value in values]


def _side(device: str) -> str:
    """H for the memory of the host, D for that of an accelerator."""
    return "H" if "CPU" in device.rpartition("device:")[2] else "D"


def _names(op: Operation) -> str:
    return ", ".join(tensor.name for tensor in op.inputs)
