"""``tf.explain_placement``: where each operation of a step runs, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from runnel.graph.device_set import LogicalDevice
from runnel.graph.graph import Graph
from runnel.graph.operation import Operation, Tensor
from runnel.passes.placement.node_devices import devices_of_nodes
from runnel.passes.placement.partition import partition
from runnel.passes.placement.placement import Placement
from runnel.passes.program.program import Program
from runnel.passes.program.prune import prune
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.session.feeds import expand_feeds
from runnel.runtime.session.fetches import expand_fetches


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation: its device and the reason."""

    operation: Operation
    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value that is sent from one device to another."""

    tensor: str
    source: str
    destination: str
    consumers: int


class PlacementExplanation:
    """The placement of a step; ``str`` gives a table, :meth:`to_html` a page.

    Example:
        >>> explanation = tf.explain_placement(sess, train_op)
        >>> explanation["layer1/MatMul"].device
        '/job:localhost/replica:0/task:0/device:GPU:0'
        >>> explanation.save("placement.html")
    """

    def __init__(
        self,
        devices: Iterable[LogicalDevice],
        entries: list[Entry],
        crossings: list[Crossing],
        speeds: Sequence[str] = (),
    ) -> None:
        self.devices = list(devices)
        self.entries = entries
        self.crossings = crossings
        self.speeds = list(speeds)
        """The speeds that the cost model went by, one line each; empty if it had no choice."""
        self._by_name = {entry.operation.name: entry for entry in entries}

    def __getitem__(self, name: str) -> Entry:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        rows = [(e.operation.name, e.operation.type, _short(e.device), e.reason) for e in self]
        widths = [max([len(row[i]) for row in rows], default=0) for i in range(3)]
        lines = []
        for device in self.devices:
            count = sum(entry.device == device.name for entry in self)
            lines.append(f"{device.name}: {count} operations")
        lines.append("")
        for *cells, reason in rows:
            padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
            lines.append("  ".join([*padded, reason]).rstrip())
        if self.crossings:
            lines += ["", "Sent between devices:"]
        for c in self.crossings:
            route = f"{_short(c.source)} -> {_short(c.destination)}"
            lines.append(f"  {c.tensor}  {route}  ({c.consumers} consumers)")
        if self.speeds:
            lines += ["", "What the cost model went by:", *(f"  {line}" for line in self.speeds)]
        return "\n".join(lines)

    def to_html(self) -> str:
        """The same as a page that needs nothing else."""
        from runnel.runtime.explain.placement_page import placement_page

        return placement_page(self)

    def save(self, path: Any) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_html())


def _short(device: str) -> str:
    return device.rpartition("device:")[2]


def explain_placement(
    graph_or_session: Any = None,
    fetches: Any = None,
    feed_dict: Any = None,
    config: Any = None,
) -> PlacementExplanation:
    """Where each operation that ``fetches`` need is placed, why, and what is sent between devices.

    ``graph_or_session`` is a session, whose devices, settings and variables count, or a graph
    (by default the default graph), to be placed as a session with ``config`` would; without
    ``fetches`` all of its operations are. ``feed_dict`` (or a list) names what would be fed.

    Example:
        >>> print(tf.explain_placement(sess, [loss, train_op]))
    """
    graph, devices = _resolve(graph_or_session, config)
    fed: list[Tensor] = []
    if feed_dict:
        keys = feed_dict if isinstance(feed_dict, dict) else dict.fromkeys(feed_dict)
        fed = list(expand_feeds(graph, keys))
    if fetches is None:
        tensors: list[Tensor] = []
        targets = [op for op in graph.get_operations() if op.type != "Placeholder"]
    else:
        elements, _ = expand_fetches(graph, fetches)
        tensors = [e for e in elements if isinstance(e, Tensor)]
        targets = [e for e in elements if isinstance(e, Operation)]
    program = prune(tensors, targets, fed)
    placement = devices.placement([node.op for node in program.nodes], program)
    entries = [
        Entry(op, placed.device.name, placed.reason) for op, placed in placement.placed.items()
    ]
    speeds = placement.speeds.described(devices.devices) if placement.speeds is not None else ()
    return PlacementExplanation(devices.devices, entries, _crossings(program, placement), speeds)


def _resolve(graph_or_session: Any, config: Any) -> tuple[Graph, SessionDevices]:
    if graph_or_session is None or isinstance(graph_or_session, Graph):
        from runnel.graph.graph import get_default_graph

        graph = graph_or_session if graph_or_session is not None else get_default_graph()
        return graph, SessionDevices.from_config(config)
    devices = getattr(graph_or_session, "_devices", None)
    if not isinstance(devices, SessionDevices):
        raise TypeError(
            f"explain_placement takes a tf.Graph or a session, not {graph_or_session!r}"
        )
    if config is not None:
        raise ValueError("A session has a configuration of its own; pass config with a graph")
    return graph_or_session.graph, devices


def _crossings(program: Program, placement: Placement) -> list[Crossing]:
    parted = partition(program, devices_of_nodes(program, placement), host=placement.devices.host)
    consumers: dict[int, int] = {}
    for part in parted.parts.values():
        for node in part.program.nodes:
            if node not in part.name_of:  # the user has made it
                for value in dict.fromkeys(node.inputs):
                    consumers[value] = consumers.get(value, 0) + 1
    found = []
    for send, recv in parted.recv_of.items():
        if recv.outputs[0] not in consumers:
            continue  # in one process, order says that something has run, or is to run again
        name = send.attrs["tensor_name"].split("_", 2)[2]
        found.append(
            Crossing(
                name,
                send.attrs["send_device"],
                send.attrs["recv_device"],
                consumers[recv.outputs[0]],
            )
        )
    return found
