"""What is known of each operation: parameters, arithmetic, time and memory in traced steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runnel.graph.collections import GraphKeys
from runnel.graph.graph import Graph
from runnel.profiler.float_operations import float_operations

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})


@dataclass(slots=True)
class Measured:
    """An operation, with means over the steps that were traced."""

    name: str
    types: tuple[str, ...]
    parameters: int = 0
    float_ops: int = 0
    micros: float = 0.0
    accelerator_micros: float = 0.0
    """Of :attr:`micros`, those on devices that are no CPU."""
    bytes: float = 0.0
    """What it has asked for: its outputs, and a compiled segment's temporary memory."""
    peak_bytes: float = 0.0
    output_bytes: float = 0.0
    runs: int = 0
    device: str = ""

    def matches(self, patterns: Sequence[str]) -> bool:
        """True when one of its types matches one of ``patterns``."""
        return any(re.fullmatch(p, kind) for p in patterns for kind in self.types)


def measured(graph: Graph, traces: Sequence[Any], op_log: Any = None) -> dict[str, Measured]:
    """The operations of ``graph`` by name, with what ``traces`` (RunMetadata) say of them.

    ``op_log`` (an ``OpLogProto``) adds types and floating-point operations to some.
    """
    trainable = {v.op.name for v in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    found: dict[str, Measured] = {}
    for op in graph.get_operations():
        types: tuple[str, ...] = (op.type,)
        if op.name in trainable:
            types = (op.type, "_trainable_variables")
        one = found[op.name] = Measured(op.name, types, float_ops=float_operations(op))
        if op.type in _VARIABLES:
            one.parameters = op.attrs["shape"].num_elements() or 0
    for trace in traces:
        for device in trace.step_stats.dev_stats:
            for stats in device.node_stats:
                _add(found, stats, device.device, len(traces))
    for entry in op_log.log_entries if op_log is not None else ():
        logged = found.get(entry.name)
        if logged is not None:
            logged.types = tuple(dict.fromkeys((*logged.types, *entry.types)))
            logged.float_ops = entry.float_ops if entry.float_ops > 0 else logged.float_ops
    return found


def _add(found: dict[str, Measured], stats: Any, device: str, steps: int) -> None:
    one = found.get(stats.node_name)
    if one is None:  # compiled segments and transfers have names of their own
        kind = stats.timeline_label.partition(" = ")[2].partition("(")[0] or "Unknown"
        one = found[stats.node_name] = Measured(stats.node_name, (kind,))
    one.micros += stats.all_end_rel_micros / steps
    if "CPU" not in device.rpartition("device:")[2].upper():
        one.accelerator_micros += stats.all_end_rel_micros / steps
    sizes = (o.tensor_description.allocation_description.requested_bytes for o in stats.output)
    made = sum(sizes)
    most = max(made, sum(memory.peak_bytes for memory in stats.memory))
    one.output_bytes += made / steps
    one.peak_bytes += most / steps
    one.bytes += most / steps
    one.runs += 1
    one.device = device
