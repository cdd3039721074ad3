"""``tf.profiler.advise``: what a traced step says about where to look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runnel.graph.graph import Graph, get_default_graph
from runnel.profiler.counts import message
from runnel.profiler.measured import Measured, measured
from runnel.runtime.report.tier_reason import time_text

_MOST = 3


def advise(
    graph: Graph | None = None, run_meta: Any = None, options: Mapping[str, Any] | None = None
) -> Any:
    """Reports on the step of ``run_meta``, as an ``AdviceProto``; they are printed too.

    ``options`` names the checkers to ask, all by default: ``ExpensiveOperationChecker`` and
    ``AcceleratorUtilizationChecker``. TensorFlow's others have nothing to say here.

    Example:
        >>> tf.profiler.advise(sess.graph, run_meta=metadata)
    """
    traces = [] if run_meta is None else [run_meta]
    return advice_of(graph or get_default_graph(), traces, options)


def advice_of(graph: Graph, traces: list[Any], options: Mapping[str, Any] | None) -> Any:
    """Reports on several traced steps."""
    unknown = set(options or ()) - _CHECKERS.keys() - _SILENT
    if unknown:
        known = ", ".join(sorted([*_CHECKERS, *_SILENT]))
        raise ValueError(f"There is no checker {sorted(unknown)[0]!r}; there are {known}")
    advice = message("AdviceProto")()
    operations = measured(graph, traces)
    for name, check in _CHECKERS.items():
        if not options or name in options:
            reports = check(graph, operations, traces)
            advice.checkers[name].reports.extend(reports)
            if reports:
                print("\n".join([f"{name}:", *reports]))
    return advice


def _expensive(graph: Graph, operations: dict[str, Measured], traces: list[Any]) -> list[str]:
    """What takes longest, and where it was made."""
    whole = sum(one.micros for one in operations.values())
    slowest = sorted(operations.values(), key=lambda one: -one.micros)[:_MOST]
    made = {op.name: op for op in graph.get_operations()}
    reports = []
    for place, one in enumerate(slowest):
        if one.micros:
            text = f"top {place + 1} operation: {one.name} ({one.types[0]}), "
            text += f"{time_text(one.micros / 1e6)}, {one.micros / whole:.0%} of the step"
            sites = made[one.name].creation_site() if one.name in made else []
            reports.append(f"{text}, created at {sites[-1]}" if sites else text)
    return reports


def _utilization(graph: Graph, operations: dict[str, Measured], traces: list[Any]) -> list[str]:
    """How much of the step each accelerator was at work."""
    starts, ends, busy = [], [], dict[str, int]()
    for trace in traces:
        for device in trace.step_stats.dev_stats:
            for stats in device.node_stats:
                starts.append(stats.all_start_micros)
                ends.append(stats.all_start_micros + stats.all_end_rel_micros)
                if "CPU" not in device.device.rpartition("device:")[2]:
                    busy[device.device] = busy.get(device.device, 0) + stats.all_end_rel_micros
    return [
        f"device: {name} utilization: {taken / max(max(ends) - min(starts), 1):.2f}"
        for name, taken in busy.items()
    ]


_CHECKERS: dict[str, Callable[[Graph, dict[str, Measured], list[Any]], list[str]]] = {
    "ExpensiveOperationChecker": _expensive,
    "AcceleratorUtilizationChecker": _utilization,
}
_SILENT = frozenset({"JobChecker", "OperationChecker"})
"""Those of TensorFlow that would speak of its own clusters and of formats of images."""
