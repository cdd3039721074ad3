"""The cost of operations and transfers, for automatic placement: work from shapes, over speeds.

The speeds are those of this machine where runnel has measured them
(``runtime.devices.calibration``), and typical ones otherwise. The model is rough on purpose.
Placement only acts on clear differences, such as a thousand small operations on a GPU against the
same on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation, Tensor

_UNKNOWN_DIMENSION = 32
"""What an unknown dimension, usually the batch, is taken to be."""


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """How fast a device is. Times in seconds."""

    flops: float
    bytes: float
    """Bytes that its memory moves in a second."""
    heavy: float
    """What starting a kernel of its own costs (a matrix product, a convolution)."""
    light: float
    """What one more small operation costs, in the company of others."""
    step: float
    """What a step costs for using the device at all."""


@dataclass(frozen=True, slots=True)
class LinkSpeed:
    """From one memory to another: what a transfer takes at least, and bytes in a second."""

    latency: float
    bytes: float


TYPICAL: dict[str, DeviceSpeed] = {
    "CPU": DeviceSpeed(1e11, 2e10, 2e-6, 1e-6, 2e-6),
    "GPU": DeviceSpeed(4e13, 2e12, 6e-6, 0.5e-6, 60e-6),
    "TPU": DeviceSpeed(1e14, 1e12, 4e-6, 0.5e-6, 60e-6),
}
"""By kind of device."""
TYPICAL_LINK = LinkSpeed(20e-6, 1.2e10)
HAND_OVER = 8e-6
"""What a value costs that goes to a device in the same memory."""

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


@dataclass(frozen=True)
class Speeds:
    """The speeds of a machine's devices and of the links between them.

    ``devices`` and ``links`` hold what has been measured, by ``LogicalDevice.hardware``; for the
    rest typical figures stand. ``Speeds()`` is typical in everything.
    """

    devices: Mapping[str, DeviceSpeed] = field(default_factory=dict)
    links: Mapping[tuple[str, str], LinkSpeed] = field(default_factory=dict)

    def of(self, device: LogicalDevice) -> DeviceSpeed:
        """The speed of ``device``."""
        measured = self.devices.get(device.hardware)
        return measured or TYPICAL.get(device.device_type, TYPICAL["CPU"])

    def link(self, source: LogicalDevice, destination: LogicalDevice) -> LinkSpeed:
        """The speed of what lies between two memories."""
        return self.links.get((source.hardware, destination.hardware), TYPICAL_LINK)

    def seconds(self, op: Operation, device: LogicalDevice) -> float:
        """The time that ``op`` takes on ``device``."""
        if op.type in _FREE or op.op_def.variable:
            return 0.0
        speed = self.of(device)
        moved = sum(size_in_bytes(t) for t in (*op.inputs, *op.outputs) if not t.dtype.is_ref_dtype)
        work = max(flops(op) / speed.flops, moved / speed.bytes)
        return work + (speed.heavy if op.type in _FLOPS else speed.light)

    def transfer_seconds(
        self, tensor: Tensor, source: LogicalDevice, destination: LogicalDevice
    ) -> float:
        """The time until a value has arrived on another device."""
        if source.hardware == destination.hardware:
            return HAND_OVER
        link = self.link(source, destination)
        return link.latency + size_in_bytes(tensor) / link.bytes

    def described(self, devices: Iterable[LogicalDevice]) -> list[str]:
        """For people: a line for each device and for each link between two."""
        first_of = {device.hardware: device for device in reversed(list(devices))}
        distinct = sorted(first_of.values(), key=lambda device: (device.device_type, device.index))
        lines = []
        for device in distinct:
            speed = self.of(device)
            lines.append(
                f"{device.short_name}: {speed.flops / 1e12:.3g} TFLOP/s in products, "
                f"{speed.bytes / 1e9:.3g} GB/s in memory, {speed.step * 1e6:.3g} us a step "
                f"({_origin(device.hardware in self.devices)})"
            )
        for source in distinct:
            for destination in distinct:
                if source is not destination:
                    link = self.link(source, destination)
                    known = (source.hardware, destination.hardware) in self.links
                    lines.append(
                        f"{source.short_name} -> {destination.short_name}: "
                        f"{link.latency * 1e6:.3g} us and {link.bytes / 1e9:.3g} GB/s "
                        f"({_origin(known)})"
                    )
        return lines


def _origin(measured: bool) -> str:
    return "measured" if measured else "typical"
