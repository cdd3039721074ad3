"""Running out of a device's memory, and other failures of a device.

A compiled segment updates variables in place: from the moment it starts, their old values are gone.
So runnel asks whether it fits before it first runs, when nothing has changed yet.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import Any

from runnel.graph import errors
from runnel.graph.operation import Operation
from runnel.passes.program.program import Node
from runnel.runtime.devices.devices import host_memory, kind_of
from runnel.runtime.state.cell import Cell

_ADVICE = (
    "Use a smaller batch, place a part of the model on another device (tf.device), or keep less: "
    "tf.explain_placement shows what runs where"
)


def needed_bytes(compiled: Any) -> int:
    """The memory that a compiled program takes beyond its arguments; 0 if XLA does not say."""
    try:
        analysis = compiled.memory_analysis()
        needed = analysis.temp_size_in_bytes + analysis.output_size_in_bytes
        return int(needed - analysis.alias_size_in_bytes)
    except (AttributeError, NotImplementedError, RuntimeError):
        return 0


def free_bytes(device: Any) -> int | None:
    """The free memory of a JAX device; all of the host's for the CPU; None if unknown."""
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))
    return host_memory() or None if device.platform == "cpu" else None


def peak_memory_of_devices() -> dict[str, int]:
    """The most bytes that were in use on each device of JAX that tells, with what to call it."""
    import jax

    found = {}
    for device in jax.local_devices():
        stats = device.memory_stats()
        if stats and "peak_bytes_in_use" in stats:
            name = f"peak memory of {kind_of(device.platform)}:{device.local_hardware_id or 0}"
            found[name] = int(stats["peak_bytes_in_use"])
    return found


def require_memory(needed: int, device: Any, nodes: Sequence[Node], name: str) -> None:
    """An error when a program that is about to run for the first time cannot fit."""
    if device is None:
        import jax

        device = jax.local_devices()[0]
    free = free_bytes(device)
    if free is None or needed <= free:
        return
    gc.collect()  # arrays that nobody uses any more
    free = free_bytes(device) or 0
    if needed > free:
        raise errors.ResourceExhaustedError(
            None,
            nodes[-1].op,
            f"{_described(nodes, name)}, needs {readable_size(needed)} of memory; {name} has "
            f"{readable_size(free)} free. It has changed nothing. {_ADVICE}",
        )


def is_device_error(error: RuntimeError) -> bool:
    """True for what JAX raises when a device fails (known by name: JAX need not be loaded)."""
    return type(error).__name__ == "JaxRuntimeError"


def device_error(
    error: Exception, nodes: Sequence[Node], name: str, lost: Sequence[Operation] = ()
) -> errors.OpError:
    """A failure of a device as TensorFlow classes it: which operations, which device, what to do.

    ``lost`` are variables whose values the failed update in place took along.
    """
    op = nodes[-1].op
    what = _described(nodes, name)
    remains = "The session can be used further"
    if lost:
        names = ", ".join(repr(variable.name) for variable in lost[:5])
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        remains += (
            f", but {names}{more} were being updated in place and have lost their values: restore "
            "them from a checkpoint, or initialise them again"
        )
    text = str(error)
    if "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower():
        message = f"{what}, ran out of memory. {_ADVICE}. {remains}. {text}"
        return errors.ResourceExhaustedError(None, op, message)
    return errors.InternalError(None, op, f"{what}, failed. {remains}. {text}")


def forget_lost(cells: Iterable[tuple[Cell, Operation]]) -> list[Operation]:
    """Empties the cells whose arrays a failed program took or should have made; their variables."""
    lost = []
    for cell, variable in cells:
        try:
            value = cell.value  # of a pack, which may be lost as well
            if not hasattr(value, "block_until_ready"):
                continue
            failed = value.is_deleted()
            if not failed:
                value.block_until_ready()
        except RuntimeError:
            failed = True
        if failed:
            cell.value = None
            lost.append(variable)
    return lost


def _described(nodes: Sequence[Node], name: str) -> str:
    first, last = nodes[0].op.name, nodes[-1].op.name
    return f"A compiled cluster of {len(nodes)} operations ({first!r} to {last!r}) on {name}"


def readable_size(count: int) -> str:
    """So many bytes, for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:.4g} TiB"
