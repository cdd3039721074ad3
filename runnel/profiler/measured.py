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
    bytes: float = 0.0
    runs: int = 0
    device: str = ""

    def matches(self, patterns: Sequence[str]) -> bool:
        """True when one of its types matches one of ``patterns``."""
        return any(re.fullmatch(p, kind) for p in patterns for kind in self.types)


def measured(graph: Graph, traces: Sequence[Any]) -> dict[str, Measured]:
    """The operations of ``graph`` by name, with what ``traces`` (RunMetadata) say of them."""
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
    return found


def _add(found: dict[str, Measured], stats: Any, device: str, steps: int) -> None:
    one = found.get(stats.node_name)
    if one is None:  # a compiled segment has a name of its own
        one = found[stats.node_name] = Measured(stats.node_name, ("XlaRun",))
    one.micros += stats.all_end_rel_micros / steps
    sizes = (o.tensor_description.allocation_description.requested_bytes for o in stats.output)
    one.bytes += sum(sizes) / steps
    one.runs += 1
    one.device = device
