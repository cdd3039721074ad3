"""Transfers from task to task in a trace: each side notes its end, and the master joins the two.

Until they are joined, departures and arrivals are in ``StepStats`` as devices of these names, under
the keys by which the two sides meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DEPARTED, ARRIVED = "departed", "arrived"

Sized = tuple[tuple[int, ...], int]
"""A shape, and a size in bytes."""


def route_key(sender: str, receiver: str, what: str) -> str:
    """The key of something that no operation sends: it has a rendezvous key's form."""
    return f"{sender};0;{receiver};{what};0:0"


def fill_ends(
    step_stats: Any,
    departures: Mapping[str, tuple[int, Sequence[Sized]]],
    arrivals: Mapping[str, int],
    origin: int,
) -> None:
    """Writes what left this task and what came; ``origin`` is when ``perf_counter_ns`` began."""
    if departures:
        device = step_stats.dev_stats.add(device=DEPARTED)
        for key, (when, sizes) in departures.items():
            stats = device.node_stats.add(node_name=key, all_start_micros=(origin + when) // 1000)
            fill_outputs(stats, sizes)
    if arrivals:
        device = step_stats.dev_stats.add(device=ARRIVED)
        for key, when in arrivals.items():
            device.node_stats.add(node_name=key, all_start_micros=(origin + when) // 1000)


def fill_outputs(stats: Any, sizes: Sequence[Sized]) -> None:
    """Writes shapes and bytes into a ``NodeExecStats``."""
    for slot, (shape, size) in enumerate(sizes):
        description = stats.output.add(slot=slot).tensor_description
        for dimension in shape:
            description.shape.dim.add().size = dimension
        description.allocation_description.requested_bytes = size


def join_ends(step_stats: Any) -> None:
    """Puts a transfer for each departure that has arrived in place of the ends."""
    from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats

    left: dict[str, Any] = {}
    came: dict[str, int] = {}
    kept = []
    for device in step_stats.dev_stats:
        if device.device == DEPARTED:
            left |= {stats.node_name: stats for stats in device.node_stats}
        elif device.device == ARRIVED:
            came |= {stats.node_name: stats.all_start_micros for stats in device.node_stats}
        else:
            kept.append(device)
    if not left and not came:
        return
    transfers: dict[str, Any] = {}
    for key, stats in left.items():
        if key not in came:
            continue
        sender, _, receiver, tensor, _ = key.split(";")
        row = f"{receiver}/memcpy"
        if row not in transfers:
            transfers[row] = DeviceStepStats(device=row)
        moved = transfers[row].node_stats.add()
        moved.CopyFrom(stats)
        moved.node_name = f"{tensor}:RecvTensor"
        moved.timeline_label = (
            f"{moved.node_name} = RecvTensor({tensor}) from {sender} to {receiver}"
        )
        # Clocks of tasks are aligned to some microseconds only: the receiver's is kept to.
        moved.all_start_micros = min(stats.all_start_micros, came[key] - 1)
        taken = came[key] - moved.all_start_micros
        moved.op_end_rel_micros = moved.all_end_rel_micros = taken
    whole = type(step_stats)(dev_stats=[*kept, *transfers.values()])
    step_stats.CopyFrom(whole)
