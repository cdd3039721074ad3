"""``Timeline``: a traced step as a file for Chrome's ``chrome://tracing`` and for Perfetto."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["Timeline"]


def __dir__() -> list[str]:
    return __all__


_LABEL = re.compile(
    r"(?P<name>.+?) = (?P<op>[^(]+)\((?P<inputs>.*)\)"
    r"(?: from (?P<sender>\S+) to (?P<receiver>\S+))?\Z",
    re.DOTALL,
)
_COMPILED = "XlaRun"
_TRANSFERS = "/memcpy"
"""How the name of a device ends to which transfers to it are written."""


class Timeline:
    """What a step did, device by device, from ``RunMetadata.step_stats``.

    A compiled segment is one event, ``XlaRun``, with the operations in it; what crosses between
    devices is in a row of its own.

    Example:
        >>> options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        >>> metadata = tf.RunMetadata()
        >>> sess.run(train_op, options=options, run_metadata=metadata)
        >>> trace = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
        >>> open("/tmp/timeline.json", "w").write(trace)
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._step_stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False
    ) -> str:
        """The trace as JSON.

        ``show_dataflow`` draws an arrow from each operation to those that take its results.
        ``show_memory`` shows how many bytes of results are waiting to be used, device by device.
        """
        events: list[dict[str, Any]] = []
        ran = [_Ran(pid, stats) for pid, device in self._devices() for stats in device.node_stats]
        for pid, device in self._devices():
            events.append(_metadata("process_name", pid, _row_name(device.device)))
            _assign_lanes([one for one in ran if one.pid == pid])
        events += [one.event() for one in ran]
        producers = {name: one for one in ran for name in one.gives}
        if show_dataflow:
            events += _arrows(ran, producers)
        if show_memory:
            events += self._memory(ran, producers)
        return json.dumps({"traceEvents": events}, indent=1)

    def _devices(self) -> list[tuple[int, Any]]:
        return list(enumerate(self._step_stats.dev_stats))

    def _memory(self, ran: list[_Ran], producers: dict[str, _Ran]) -> list[dict[str, Any]]:
        last_use = {id(one): one.end for one in ran}
        for one in ran:
            for source in one.sources(producers):
                last_use[id(source)] = max(last_use[id(source)], one.end)
        events = []
        for pid, _ in self._devices():
            changes: dict[int, int] = {}
            for one in ran:
                if one.pid == pid and one.bytes:
                    changes[one.begin] = changes.get(one.begin, 0) + one.bytes
                    end = last_use[id(one)]
                    changes[end] = changes.get(end, 0) - one.bytes
            total = 0
            for moment in sorted(changes):
                total += changes[moment]
                events.append(
                    {
                        "ph": "C",
                        "cat": "Memory",
                        "name": "results",
                        "pid": pid,
                        "tid": 0,
                        "ts": moment,
                        "args": {"bytes": total},
                    }
                )
        return events


class _Ran:
    """An operation that ran, or a compiled segment; times in microseconds."""

    def __init__(self, pid: int, stats: Any) -> None:
        self.pid = pid
        self.lane = 0
        self.stats = stats
        self.begin = stats.all_start_micros
        self.end = stats.all_start_micros + stats.all_end_rel_micros
        found = _LABEL.match(stats.timeline_label)
        self.op = found["op"] if found else stats.timeline_label
        listed = [text for text in found["inputs"].split(", ") if text] if found else []
        is_compiled = self.op == _COMPILED
        self.inputs: list[str] = [] if is_compiled else listed
        self.operations: list[str] = listed if is_compiled else []
        self.gives = [stats.node_name, *self.operations]
        """The names under which others take its results."""
        self.route = (found["sender"], found["receiver"]) if found and found["sender"] else None
        self.bytes = sum(
            output.tensor_description.allocation_description.requested_bytes
            for output in stats.output
        )

    def sources(self, producers: dict[str, _Ran]) -> list[_Ran]:
        """What gave the inputs; nothing for a compiled segment, whose inputs are not named."""
        names = (text.removeprefix("^").partition(":")[0] for text in self.inputs)
        return [producers[name] for name in names if name in producers]

    def event(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {"name": self.stats.node_name, "op": self.op}
        arguments |= {f"input{i}": text for i, text in enumerate(self.inputs)}
        if self.operations:
            arguments["operations"] = ", ".join(self.operations)
        if self.route is not None:
            arguments["from"], arguments["to"] = self.route
        if self.bytes:
            arguments["bytes"] = self.bytes
        taken = sum(one.requested_bytes for one in self.stats.referenced_tensor)
        memory = self.stats.memory_stats
        sizes = {
            "bytes taken": taken,
            "bytes of variables updated": memory.persistent_memory_size,
            "temporary bytes": memory.temp_memory_size,
        }
        arguments |= {name: size for name, size in sizes.items() if size}
        return {
            "ph": "X",
            "cat": "Op" if self.route is None else "Transfer",
            "name": self.op,
            "pid": self.pid,
            "tid": self.lane,
            "ts": self.begin,
            "dur": self.end - self.begin,
            "args": arguments,
        }


def _assign_lanes(ran: list[_Ran]) -> None:
    """Gives operations that ran at the same time lanes of their own."""
    free: list[int] = []
    for one in sorted(ran, key=lambda one: one.begin):
        for lane, end in enumerate(free):
            if end <= one.begin:
                one.lane, free[lane] = lane, one.end
                break
        else:
            one.lane = len(free)
            free.append(one.end)


def _arrows(ran: list[_Ran], producers: dict[str, _Ran]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for one in ran:
        for source in one.sources(producers):
            if source is one:
                continue
            shared = {"cat": "DataFlow", "name": source.stats.node_name, "id": len(events)}
            start = {"ph": "s", "pid": source.pid, "tid": source.lane, "ts": source.end}
            end = {"ph": "t", "pid": one.pid, "tid": one.lane, "ts": one.begin}
            events += [shared | start, shared | end]
    return events


def _row_name(device: str) -> str:
    if device.endswith(_TRANSFERS):
        return f"{device.removesuffix(_TRANSFERS)} Transfers"
    return f"{device} Compute"


def _metadata(name: str, pid: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "args": {"name": text}}
