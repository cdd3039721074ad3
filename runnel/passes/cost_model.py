"""What an operation and a transfer cost: an estimate from shapes, for automatic placement.

The figures are rough on purpose. Placement only acts on differences that are clear, such as a
thousand small operations on a GPU against the same on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from runnel.graph.operation import Operation, Tensor

_UNKNOWN_DIMENSION = 32
"""What an unknown dimension, usually the batch, is taken to be."""


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """How fast a kind of device is. Times in seconds."""

    flops: float
    bytes: float
    """Bytes that its memory moves in a second."""
    heavy: float
    """What starting a kernel of its own costs (a matrix product, a convolution)."""
    light: float
    """What one more small operation costs, in the company of others."""
    step: float
    """What a step costs for using the device at all."""


SPEEDS: dict[str, DeviceSpeed] = {
    "CPU": DeviceSpeed(1e11, 2e10, 2e-6, 1e-6, 2e-6),
    "GPU": DeviceSpeed(4e13, 2e12, 6e-6, 0.5e-6, 60e-6),
    "TPU": DeviceSpeed(1e14, 1e12, 4e-6, 0.5e-6, 60e-6),
}

# Between memories: what a transfer costs at least, and bytes in a second.
LATENCY = 20e-6
BANDWIDTH = 1.2e10
# Between devices that share a memory.
HAND_OVER = 8e-6

_FREE = frozenset({"Const", "Placeholder", "NoOp", "Identity", "StopGradient", "VariableV2"})


def size(tensor: Tensor) -> int:
    """Elements of a tensor, as far as its static shape says."""
    if tensor.dims is None:
        return _UNKNOWN_DIMENSION
    return prod(_UNKNOWN_DIMENSION if d is None else d for d in tensor.dims)


def size_in_bytes(tensor: Tensor) -> int:
    """Bytes of a tensor, as far as its static shape says."""
    return size(tensor) * max(tensor.dtype.base_dtype.size, 1)


def _matmul(op: Operation) -> float:
    inner = op.inputs[0].dims
    transposed = op.attrs.get("transpose_a") or op.attrs.get("adj_x")
    if not inner or len(inner) < 2:
        return 2.0 * size(op.outputs[0]) * _UNKNOWN_DIMENSION
    k = inner[-2] if transposed else inner[-1]
    return 2.0 * size(op.outputs[0]) * (k or _UNKNOWN_DIMENSION)


def _convolution(op: Operation) -> float:
    # Forward, or one of the two gradients: each does the work of the forward pass.
    filters = op.inputs[1] if op.type != "Conv2DBackpropFilter" else op.outputs[0]
    image = {"Conv2DBackpropInput": 2, "Conv2DBackpropFilter": 2}.get(op.type)
    outputs = op.inputs[image] if image is not None else op.outputs[0]
    dims = filters.dims
    if not dims or len(dims) < 4:
        return 2.0 * size(outputs) * _UNKNOWN_DIMENSION
    window = prod(d or _UNKNOWN_DIMENSION for d in dims[:-1])
    return 2.0 * size(outputs) * window


_FLOPS: dict[str, Callable[[Operation], float]] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2"), _matmul),
    **dict.fromkeys(("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"), _convolution),
}


def flops(op: Operation) -> float:
    """Floating-point operations of ``op``, roughly."""
    rule = _FLOPS.get(op.type)
    if rule is not None:
        return rule(op)
    return float(max([size(t) for t in (*op.inputs, *op.outputs)], default=0))


def seconds(op: Operation, kind: str) -> float:
    """The time that ``op`` takes on a kind of device."""
    if op.type in _FREE or op.op_def.variable:
        return 0.0
    speed = SPEEDS.get(kind, SPEEDS["CPU"])
    moved = sum(size_in_bytes(t) for t in (*op.inputs, *op.outputs) if not t.dtype.is_ref_dtype)
    work = max(flops(op) / speed.flops, moved / speed.bytes)
    return work + (speed.heavy if op.type in _FLOPS else speed.light)


def transfer_seconds(tensor: Tensor, shared_memory: bool) -> float:
    """The time until a value has arrived on another device."""
    if shared_memory:
        return HAND_OVER
    return LATENCY + size_in_bytes(tensor) / BANDWIDTH
