"""Errors of placement: which operation, where it was made, what it asked for, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runnel.graph.device import DeviceSpec
from runnel.graph.device_set import DeviceSet, LogicalDevice
from runnel.graph.errors import InvalidArgumentError
from runnel.graph.operation import Operation
from runnel.passes.placement.kernel_devices import kinds_with_kernels
from runnel.passes.program.program import first_type

_SOFT = "tf.ConfigProto(allow_soft_placement=True)"


def _made_at(op: Operation) -> str:
    return op.creation_site()[-1].partition("\n")[0]


def no_such_device(
    op: Operation, wish: str, devices: DeviceSet, soft: bool
) -> InvalidArgumentError:
    """The error for a device that this session does not have."""
    known = ", ".join(device.name for device in devices)
    remedy = f"Name one of those in tf.device, or have {_SOFT} choose"
    if soft:
        remedy = "Soft placement keeps the job and the task that were asked for; name another"
    return InvalidArgumentError(
        None,
        op,
        f"Cannot assign a device for operation {op.name!r} ({op.type}): it was explicitly assigned "
        f"to {wish}, which does not exist. The devices of this session are: {known}. {remedy}",
    )


def no_kernel(
    op: Operation,
    admitted: Sequence[LogicalDevice],
    wish: str,
    group: Iterable[Operation],
    soft: bool,
) -> InvalidArgumentError:
    """The error for an operation without a kernel on any device that it may be on."""
    kinds = ", ".join(sorted({device.device_type for device in admitted}))
    dtype = first_type(op.op_def, op.attrs)
    of_type = f" for {dtype.name}" if dtype is not None else ""
    others = [member for member in group if member is not op]
    together = ""
    if others:
        together = f" It shares its device with {others[0].name!r} ({_made_at(others[0])})."
    remedy = f"Place it on the CPU, or have {_SOFT} do so" if not soft else "Register a kernel"
    asked = f", where {wish} puts it" if wish else ""
    return InvalidArgumentError(
        None,
        op,
        f"Cannot assign a device for operation {op.name!r}: {op.type} has no kernel{of_type} on "
        f"{kinds}{asked}; it has kernels on: {kinds_with_kernels(op)}.{together} {remedy}",
    )


def conflicting_colocation(
    op: Operation, wish: DeviceSpec, other: Operation, spec: DeviceSpec
) -> InvalidArgumentError:
    """The error for two operations that must be together, but ask for different devices."""
    return InvalidArgumentError(
        None,
        op,
        f"Cannot assign a device for operation {op.name!r}: it must be on the device of "
        f"{other.name!r} (colocation), but {op.name!r} (made at {_made_at(op)}) asks for "
        f"{wish.to_string()} and {other.name!r} (made at {_made_at(other)}) for "
        f"{spec.to_string()}. Take the colocation or one of the wishes away, or have {_SOFT} "
        "drop the later wish",
    )
