"""The kinds of device on which an operation can run."""

from __future__ import annotations

from runnel.graph import dtypes
from runnel.graph.graph_scopes import mapped_folder
from runnel.graph.operation import Operation
from runnel.graph.registry import INTERPRETED
from runnel.ops.control_flow import ENTERS, EXITS, MERGES, NEXT_ITERATIONS, SWITCHES
from runnel.passes.program.program import first_type

KERNEL, ON_HOST, MISSING = "kernel", "on host", "missing"
"""How an operation is served on a device: by a kernel, by the host on its behalf, not at all."""

_HOST_TYPES = frozenset({dtypes.string, dtypes.variant})
# What passes values on, or lives for one step, is wherever the values are.
_FOLLOWING = frozenset(
    {
        *SWITCHES,
        *MERGES,
        *ENTERS,
        *EXITS,
        *NEXT_ITERATIONS,
        *("LoopCond", "ControlTrigger", "NoOp", "Const", "Placeholder", "PlaceholderWithDefault"),
        *("TensorArrayV3", "StackV2", "Assert"),
    }
)
# TensorFlow has these on accelerators too: they are the host's, which gives elements to the device.
_ITERATORS = frozenset(
    {
        *("Iterator", "IteratorV2", "OneShotIterator", "MakeIterator"),
        *("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional"),
        *("IteratorToStringHandle", "IteratorFromStringHandle", "IteratorFromStringHandleV2"),
        *("SerializeIterator", "DeserializeIterator"),
    }
)


def service(op: Operation, kind: str) -> str:
    """How ``op`` is served on a device of ``kind``: KERNEL, ON_HOST or MISSING."""
    op_def = op.op_def
    if kind == "CPU":
        if not op_def.kernels or op_def.name in _FOLLOWING:
            return KERNEL
        dtype = first_type(op_def, op.attrs)
        if op_def.select_kernel(kind, dtype, INTERPRETED) is not None:
            return KERNEL
        return KERNEL if op_def.can_compile(kind, dtype) else MISSING
    if op_def.variable and mapped_folder(op):
        return MISSING
    if op_def.name in _ITERATORS:
        return ON_HOST
    if _has_host_types(op):
        return KERNEL if op_def.name == "Assert" else MISSING
    if op_def.name in _FOLLOWING or op_def.variable or not op_def.kernels:
        return KERNEL
    if op_def.can_compile(kind, first_type(op_def, op.attrs)):
        return KERNEL
    if not op_def.host:
        return MISSING
    # A shape that depends on data, or a question about a variable: the host answers for the
    # device. An effect (a queue, a file, a Python function) is the host's own.
    return ON_HOST if not op_def.stateful or touches_state(op) else MISSING


def follows_values(op: Operation) -> bool:
    """True for what passes values on and computes nothing: it is wherever they are."""
    return op.op_def.name in _FOLLOWING


def touches_state(op: Operation) -> bool:
    """True when ``op`` takes a reference or a resource handle."""
    return any(t.dtype.is_ref_dtype or t.dtype == dtypes.resource for t in op.inputs)


def _has_host_types(op: Operation) -> bool:
    if any(t.dtype.base_dtype in _HOST_TYPES for t in op.outputs):
        return True
    if any(t.dtype.base_dtype in _HOST_TYPES for t in op.inputs):
        return True
    return op.op_def.variable and op.attrs.get("dtype") in _HOST_TYPES


def kinds_with_kernels(op: Operation) -> str:
    """For a message: the kinds of device that have a kernel for ``op``."""
    kinds = [kind for kind in ("CPU", "GPU", "TPU") if service(op, kind) != MISSING]
    return ", ".join(kinds) or "none"
