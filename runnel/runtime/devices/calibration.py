"""Measures how fast the devices of this machine are, for automatic placement.

The first placement that has a choice between devices measures them, once in a process and in a
fraction of a second: matrix products, passes over memory, transfers in each direction. It asks for
a piece of work once, and several times at once. The difference is the time of the work, and the
rest is the time of asking. Typical figures stand for the cost of starting one more kernel.

If measuring fails, for example for lack of memory, the typical figures stand.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from runnel.graph.device_set import LogicalDevice
from runnel.passes.placement.cost_model import TYPICAL, DeviceSpeed, LinkSpeed, Speeds
from runnel.runtime.devices.devices import xla_device

logger = logging.getLogger("runnel")

_AT_ONCE = 8
_REPEATS = 5
"""The shortest of so many counts: whatever else runs on the machine only makes it longer."""

# How much work, on a CPU and on an accelerator: enough to be seen beside what asking for it costs.
_CPU_PRODUCT, _PRODUCT = 256, 2048
_CPU_PASS, _PASS = 1 << 19, 1 << 24
_SENT = 1 << 20

T = TypeVar("T")
Timer = Callable[[int], float]
"""Seconds until a piece of work that is asked for so many times at once is done."""


class Calibration:
    """What has been measured so far, with one probe."""

    def __init__(self, probe: HardwareProbe) -> None:
        self._probe = probe
        # One thread measures; others that need the figures wait for them.
        self._lock = threading.Lock()
        self._devices: dict[str, DeviceSpeed | None] = {}
        self._links: dict[tuple[str, str], LinkSpeed | None] = {}

    def speeds(self, devices: Sequence[LogicalDevice]) -> Speeds:
        """The speeds of ``devices`` and of the links between them, each measured once."""
        distinct = list({device.hardware: device for device in reversed(devices)}.values())[::-1]
        with self._lock:
            for device in distinct:
                if device.hardware not in self._devices:
                    self._devices[device.hardware] = _attempt(partial(self._device, device))
            for source in distinct:
                for destination in distinct:
                    pair = source.hardware, destination.hardware
                    if source is not destination and pair not in self._links:
                        self._links[pair] = _attempt(partial(self._link, source, destination))
            return Speeds(
                {name: speed for name, speed in self._devices.items() if speed is not None},
                {pair: link for pair, link in self._links.items() if link is not None},
            )

    def _device(self, device: LogicalDevice) -> DeviceSpeed:
        kind = device.device_type
        size, elements = (_CPU_PRODUCT, _CPU_PASS) if kind == "CPU" else (_PRODUCT, _PASS)
        product, _ = _each(self._probe.products(device, size))
        one_pass, asking = _each(self._probe.passes(device, elements))
        typical = TYPICAL.get(kind, TYPICAL["CPU"])
        speed = replace(typical, flops=2.0 * size**3 / product, bytes=8.0 * elements / one_pass)
        # A CPU need not be asked: what is small is interpreted there.
        return speed if kind == "CPU" else replace(speed, step=max(typical.step, asking))

    def _link(self, source: LogicalDevice, destination: LogicalDevice) -> LinkSpeed:
        probe = self._probe
        latency = _shortest(lambda: probe.transfer(source, destination, 1))
        whole = _shortest(lambda: probe.transfer(source, destination, _SENT))
        return LinkSpeed(latency, 4.0 * _SENT / _positive(whole - latency, whole))


def _shortest(timed: Callable[[], float]) -> float:
    return min(timed() for _ in range(_REPEATS))


def _each(timed: Timer) -> tuple[float, float]:
    """The time of one piece of work, and what is there beside it when one is asked for."""
    one = _shortest(lambda: timed(1))
    several = _shortest(lambda: timed(_AT_ONCE))
    each = min(_positive((several - one) / (_AT_ONCE - 1), one), one)
    return each, one - each


def _positive(difference: float, whole: float) -> float:
    """A difference of two times, unless chance has made nothing of it."""
    return difference if difference > whole / 100 else whole


def _attempt(measure: Callable[[], T]) -> T | None:
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 (the typical figures do as well)
        logger.info("Measuring a device failed; typical speeds are assumed: %s", error)
        return None


class HardwareProbe:
    """Times work on the devices that are there."""

    def products(self, device: LogicalDevice, size: int) -> Timer:
        """The product of two square matrices of float32."""
        return _compiled(device, lambda x: x @ x, (size, size))

    def passes(self, device: LogicalDevice, elements: int) -> Timer:
        """Reading and writing so many elements of float32."""
        return _compiled(device, lambda x: x * 2.0, (elements,))

    def transfer(self, source: LogicalDevice, destination: LogicalDevice, elements: int) -> float:
        """Seconds to bring so many elements of float32 from one memory to another."""
        import jax

        # A new array each time: JAX remembers what it has brought to the host.
        values: Any = np.ones(elements, np.float32)
        if source.device_type != "CPU":
            values = jax.device_put(values, xla_device(source))
            values.block_until_ready()
        if destination.device_type == "CPU":
            return _timed(lambda: np.array(values))
        target = xla_device(destination)
        return _timed(lambda: jax.device_put(values, target).block_until_ready())


def _compiled(
    device: LogicalDevice, function: Callable[[Any], Any], shape: tuple[int, ...]
) -> Timer:
    import jax

    values = jax.device_put(np.ones(shape, np.float32), xla_device(device))
    # Trying out ways to compute a product would take longer than all the rest.
    options: dict[str, Any] | None = None
    if device.device_type == "GPU":
        options = {"xla_gpu_autotune_level": 0}
    call = jax.jit(function, compiler_options=options)
    call(values).block_until_ready()

    def timer(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            result = call(values)
        result.block_until_ready()
        return time.perf_counter() - start

    return timer


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


_calibration: Calibration | None = None
_making = threading.Lock()  # so that the process has one calibration


def measured_speeds(devices: Sequence[LogicalDevice]) -> Speeds:
    """The speeds of devices of this process; the first call for a device measures it."""
    global _calibration
    with _making:
        if _calibration is None:
            _calibration = Calibration(HardwareProbe())
        calibration = _calibration
    return calibration.speeds(devices)
