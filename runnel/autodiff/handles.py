"""Finds the variable or stack behind a handle that control flow passes on."""

from __future__ import annotations

from runnel.graph.operation import Operation, Tensor


def made_by(handle: Tensor) -> Operation:
    """The operation that made a handle which control flow has passed on."""
    while handle.op.op_def.name in ("Enter", "Switch", "Identity"):
        handle = handle.op.inputs[0]
    return handle.op


def stack_of(handle: Tensor) -> Tensor | None:
    """The handle, as it was made, of the stack that ``handle`` denotes; None if it is none."""
    if handle.dtype.name != "resource":
        return None
    maker = made_by(handle)
    return maker.outputs[0] if maker.op_def.name == "StackV2" else None
