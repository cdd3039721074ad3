"""Measuring devices: what is made of the times, how often they are taken, who sees the result."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import runnel as tf
from runnel.graph.device_set import DeviceSet, LogicalDevice, local_device
from runnel.passes.placement.cost_model import TYPICAL, TYPICAL_LINK, Speeds
from runnel.passes.program.program import Program
from runnel.passes.program.prune import prune
from runnel.runtime.devices import calibration
from runnel.runtime.devices.calibration import Calibration, HardwareProbe, Timer
from runnel.runtime.devices.session_devices import SessionDevices
from runnel.runtime.explain.explain_placement import explain_placement

CPU = local_device("CPU", 0, hardware="host")
SECOND_CPU = local_device("CPU", 1, hardware="host")
GPU = local_device("GPU", 0)


class Machine(HardwareProbe):
    """A probe of a machine of given speeds: every time is what it must be."""

    def __init__(self, asking: float = 1e-4, flops: float = 5e12, moved: float = 3e11) -> None:
        self.asking, self.flops, self.moved = asking, flops, moved
        self.asked: list[str] = []
        self.fails = False

    def _timer(self, seconds: float) -> Timer:
        return lambda count: self.asking + count * seconds

    def products(self, device: LogicalDevice, size: int) -> Timer:
        self.asked.append(f"products on {device.short_name}")
        if self.fails:
            raise MemoryError("no room")
        return self._timer(2 * size**3 / self.flops)

    def passes(self, device: LogicalDevice, elements: int) -> Timer:
        return self._timer(8 * elements / self.moved)

    def transfer(self, source: LogicalDevice, destination: LogicalDevice, elements: int) -> float:
        if elements == 1:
            self.asked.append(f"{source.short_name} to {destination.short_name}")
        return 3e-5 + 4 * (elements - 1) / 8e9


def test_the_speeds_follow_from_the_times():
    speeds = Calibration(Machine()).speeds([CPU, GPU])
    found = speeds.of(GPU)
    assert (found.flops, found.bytes) == (pytest.approx(5e12), pytest.approx(3e11))
    assert found.step == pytest.approx(1e-4)
    assert speeds.of(CPU).step == TYPICAL["CPU"].step
    for source, destination in ((CPU, GPU), (GPU, CPU)):
        link = speeds.link(source, destination)
        assert (link.latency, link.bytes) == (pytest.approx(3e-5), pytest.approx(8e9, rel=1e-4))
    lines = speeds.described([CPU, SECOND_CPU, GPU])
    assert lines == [
        "CPU:0: 5 TFLOP/s in products, 300 GB/s in memory, 2 us a step (measured)",
        "GPU:0: 5 TFLOP/s in products, 300 GB/s in memory, 100 us a step (measured)",
        "CPU:0 -> GPU:0: 30 us and 8 GB/s (measured)",
        "GPU:0 -> CPU:0: 30 us and 8 GB/s (measured)",
    ]


def test_each_processor_and_each_link_is_measured_once():
    machine = Machine()
    calibration = Calibration(machine)
    calibration.speeds([CPU, SECOND_CPU])
    assert machine.asked == ["products on CPU:0"]
    calibration.speeds([CPU, SECOND_CPU, GPU])
    asked = list(machine.asked)
    assert list(dict.fromkeys(asked[1:])) == [
        *("products on GPU:0", "CPU:0 to GPU:0", "GPU:0 to CPU:0")
    ]
    assert asked.count("products on GPU:0") == 1
    calibration.speeds([CPU, SECOND_CPU, GPU])
    assert machine.asked == asked


def test_typical_speeds_stand_where_measuring_fails():
    machine = Machine()
    machine.fails = True
    speeds = Calibration(machine).speeds([GPU])
    assert speeds.of(GPU) == TYPICAL["GPU"]
    assert speeds.link(CPU, GPU) == TYPICAL_LINK
    assert "(typical)" in speeds.described([GPU])[0]


def test_a_difference_that_chance_has_swallowed_is_not_divided_by():
    class Constant(Machine):
        def _timer(self, seconds: float) -> Timer:
            return lambda count: 1e-3

    found = Calibration(Constant()).speeds([GPU]).of(GPU)
    assert 0 < found.flops < 1e18 and 0 < found.bytes < 1e18


def test_the_hardware_is_timed(monkeypatch):
    import jax

    monkeypatch.setattr(calibration, "xla_device", lambda device: jax.devices()[0])
    probe = HardwareProbe()
    for device in (CPU, local_device("TPU", 0)):
        assert probe.products(device, 8)(2) > 0
        assert probe.passes(device, 8)(2) > 0
    assert probe.transfer(CPU, local_device("TPU", 0), 8) > 0
    assert probe.transfer(local_device("TPU", 0), CPU, 8) > 0


# What placement makes of it -------------------------------------------------------------------


class Asked:
    """The speeds of a machine, and how often they were asked for."""

    def __init__(self, speeds: Speeds) -> None:
        self.speeds = speeds
        self.times = 0

    def __call__(self, devices: Sequence[LogicalDevice]) -> Speeds:
        self.times += 1
        return self.speeds


def program_of(fetch: tf.Tensor, feeds: list[tf.Tensor]) -> Program:
    return prune([fetch], [], feeds)


def where(speeds: Asked, devices: DeviceSet, fetch: tf.Tensor, feeds: list[tf.Tensor]) -> str:
    session_devices = SessionDevices(devices, speeds=speeds)
    program = program_of(fetch, feeds)
    placement = session_devices.placement([node.op for node in program.nodes], program)
    return placement.device_of(fetch.op).short_name


def test_a_slow_accelerator_is_not_used():
    x = tf.placeholder(tf.float32, [512, 512])
    y = tf.matmul(x, x)
    devices = DeviceSet([CPU, GPU])
    typical = Asked(Speeds())
    assert where(typical, devices, y, [x]) == "GPU:0"
    fast_cpu = Calibration(Machine(flops=1e13)).speeds([CPU]).devices
    slow_gpu = Calibration(Machine(flops=1e11)).speeds([GPU]).devices
    assert where(Asked(Speeds({**fast_cpu, **slow_gpu})), devices, y, [x]) == "CPU:0"


def test_nothing_is_measured_where_there_is_no_choice():
    x = tf.placeholder(tf.float32, [512, 512])
    with tf.device("/gpu:0"):
        y = tf.matmul(x, x)
    speeds = Asked(Speeds())
    assert where(speeds, DeviceSet([CPU, GPU]), y, [x]) == "GPU:0"
    free = tf.matmul(x, x)
    assert where(speeds, DeviceSet([CPU, SECOND_CPU]), free, [x]) == "CPU:0"
    assert speeds.times == 0
    where(speeds, DeviceSet([CPU, GPU]), free, [x])
    assert speeds.times == 1


def test_an_explanation_has_the_figures(monkeypatch):
    speeds = Calibration(Machine()).speeds([CPU, GPU])
    devices = SessionDevices(DeviceSet([CPU, GPU]), speeds=lambda _: speeds)
    monkeypatch.setattr(SessionDevices, "from_config", lambda config: devices)
    x = tf.placeholder(tf.float32, [])
    explanation = explain_placement(tf.get_default_graph(), tf.square(x), [x])
    assert "CPU:0 -> GPU:0: 30 us and 8 GB/s (measured)" in explanation.speeds
    assert "What the cost model went by:" in str(explanation)
    assert "5 TFLOP/s in products" in explanation.to_html()
