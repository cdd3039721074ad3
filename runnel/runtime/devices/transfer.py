"""Moves a value to the memory of a device: the one path between devices of a process.

A transfer is started and not waited for. JAX orders it after the computation that makes the value
and before those that use it, and copies from device to device where the hardware can. The step goes
on meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation
from runnel.runtime.devices.devices import compiles_for_host, xla_device
from runnel.runtime.state.observer import StepObserver, TransferRun
from runnel.wide_types import with_wide_types


def put(value: Any, target: Any) -> Any:
    """``value`` on an XLA device (None: JAX's default); the copy may still be on its way."""
    import jax

    return with_wide_types(jax.device_put, value, target)


class Destination:
    """A device, as values are sent to it."""

    __slots__ = ("device", "_target")

    def __init__(self, device: LogicalDevice) -> None:
        self.device = device
        self._target: Any = None

    def send(self, value: Any) -> Any:
        """``value`` as operations of the device take it; the copy may still be on its way.

        What only the host can hold, such as strings, stays there.
        """
        in_host_memory = isinstance(value, np.ndarray | np.generic)
        if self.device.device_type == "CPU" and (in_host_memory or not compiles_for_host()):
            return in_memory(value)
        if in_host_memory and value.dtype == object:
            return value
        target = self._target
        if target is None:
            target = self._target = xla_device(self.device)
        if not in_host_memory and value.devices() == {target}:
            return value
        return put(value, target)


def in_memory(value: Any) -> Any:
    """``value``, which will be read on the host: a copy from a device has been started."""
    if hasattr(value, "copy_to_host_async"):
        value.copy_to_host_async()  # nothing to do where it is in the host's memory
    return value


class Transfer:
    """One value that crosses: value ``source`` is handed to ``device`` as value ``received``."""

    __slots__ = ("source", "received", "tensor", "sender", "by_value", "_destination")

    def __init__(
        self,
        source: int,
        received: int,
        device: LogicalDevice,
        tensor: str,
        sender: LogicalDevice,
        by_value: bool,
    ) -> None:
        self.source = source
        self.received = received
        self._destination = Destination(device)
        self.tensor = tensor
        """The name of what is sent, for people."""
        self.sender = sender
        """The device that it comes from."""
        self.by_value = by_value
        """True when the receiver only wants to know the value, on the host."""

    @property
    def device(self) -> LogicalDevice:
        return self._destination.device

    def start(self, value: Any, observer: StepObserver | None = None) -> Any:
        """``value`` as the receiver takes it; the copy may still be on its way.

        What a branch that was not taken leaves, None, crosses as it is. With an ``observer``, who
        is told of it, the copy is waited for.
        """
        if value is None:
            return None
        if observer is not None:
            return self._start_observed(value, observer)
        return in_memory(value) if self.by_value else self._destination.send(value)

    def _start_observed(self, value: Any, observer: StepObserver) -> Any:
        start = time.perf_counter_ns()
        moved = self.start(value)
        if self.by_value:
            np.asarray(moved)  # which keeps what has come to the host
        sender, receiver = self.sender.name, self.device.name
        tell_of_transfer(observer, self.tensor, sender, receiver, start, moved)
        return moved

    def __repr__(self) -> str:
        route = f"{self.sender.short_name} to {self.device.short_name}"
        return f"<Transfer {self.tensor} from {route}>"


def sent_observed(
    inputs: Sequence[Any], names: Mapping[int, str], device: LogicalDevice, observer: StepObserver
) -> list[Any]:
    """``inputs`` on an accelerator, those at the positions of ``names``: what they are called."""
    sent = list(inputs)
    for position, name in names.items():
        if isinstance(inputs[position], np.ndarray):
            start = time.perf_counter_ns()
            sent[position] = put(inputs[position], xla_device(device))
            host = host_name(device.name)
            tell_of_transfer(observer, name, host, device.name, start, sent[position])
    return sent


def fetched_observed(value: Any, name: str, device: LogicalDevice, observer: StepObserver) -> None:
    """Brings ``value``, which ``device`` gave, to the host; JAX keeps the copy with it."""
    if device.device_type != "CPU" and hasattr(value, "block_until_ready"):
        value.block_until_ready()
        start = time.perf_counter_ns()
        np.asarray(value)
        tell_of_transfer(observer, name, device.name, host_name(device.name), start, value)


def host_name(device: str) -> str:
    """The CPU of the task of ``device``."""
    return f"{device.rpartition('/device:')[0]}/device:CPU:0"


def tell_of_transfer(
    observer: StepObserver,
    tensor: str,
    sender: str | Operation,
    receiver: str,
    start: int,
    moved: Any,
) -> None:
    """Waits for what was sent at ``start``, and tells ``observer`` how long that took."""
    if hasattr(moved, "block_until_ready"):
        moved.block_until_ready()
    run = TransferRun(tensor, sender, receiver, start, time.perf_counter_ns(), moved)
    observer.transfer(run)
