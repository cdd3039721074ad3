"""RunMetadata: what a step did, op by op, for TensorBoard and the timeline."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from runnel.passes.program import Node

_FULL_TRACE = 3


class StepTracer:
    """Collects a step's StepStats when ``RunOptions.trace_level`` asks for it.

    A traced step is interpreted, so that each operation has a time of its own.
    """

    def __init__(self, options: Any, run_metadata: Any) -> None:
        wanted = options is not None and options.trace_level >= _FULL_TRACE
        self._metadata = run_metadata if wanted and run_metadata is not None else None
        self._graph_def = (
            run_metadata if options is not None and options.output_partition_graphs else None
        )
        self._records: list[tuple[Node, int, int, list[Any]]] = []
        # perf_counter has no fixed origin; the trace is in microseconds since the epoch.
        self._origin_ns = time.time_ns() - time.perf_counter_ns()
        self.observe = self._observe if self._metadata is not None else None

    def _observe(self, node: Node, start: int, end: int, outputs: list[Any]) -> None:
        shapes = [(np.shape(v), getattr(v, "nbytes", 0)) for v in outputs[: len(node.outputs)]]
        self._records.append((node, start, end, shapes))

    def finish(self) -> None:
        """Fills the RunMetadata."""
        if self._metadata is None:
            return
        device = self._metadata.step_stats.dev_stats.add()
        device.device = "/job:localhost/replica:0/task:0/device:CPU:0"
        for node, start, end, shapes in self._records:
            stats = device.node_stats.add()
            stats.node_name = node.op.name
            stats.timeline_label = f"{node.op.name} = {node.op_def.name}"
            stats.all_start_micros = (self._origin_ns + start) // 1000
            duration = max((end - start) // 1000, 1)
            stats.op_end_rel_micros = stats.all_end_rel_micros = duration
            for slot, (shape, size) in enumerate(shapes):
                output = stats.output.add()
                output.slot = slot
                description = output.tensor_description
                for dimension in shape:
                    description.shape.dim.add().size = dimension
                description.allocation_description.requested_bytes = size
