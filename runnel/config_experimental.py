"""``tf.config.experimental``: the devices of this machine, their memory, how they compute."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.runtime.devices.devices import apply_gpu_options, list_devices
from runnel.runtime.session import settings


class PhysicalDevice(NamedTuple):
    """A device of the machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that sessions see."""

    name: str
    device_type: str


_growing: dict[PhysicalDevice, bool] = {}


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, or those of one type.

    Example:
        >>> tf.config.experimental.list_physical_devices("CPU")
        [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    return [
        PhysicalDevice(f"/physical_device:{d.short_name}", d.device_type)
        for d in list_devices()
        if device_type in (None, d.device_type)
    ]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that a session without a configuration sees, or those of one type."""
    return [
        LogicalDevice(d.name, d.device_type)
        for d in list_devices()
        if device_type in (None, d.device_type)
    ]


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Has XLA take a GPU's memory as it needs it; it must be called before the GPU is used."""
    _require_gpu(device)
    _growing[device] = bool(enable)
    if enable:
        from tensorboard.compat.proto.config_pb2 import GPUOptions

        apply_gpu_options(GPUOptions(allow_growth=True))


def get_memory_growth(device: PhysicalDevice) -> bool:
    """What :func:`set_memory_growth` has said of ``device``."""
    _require_gpu(device)
    return _growing.get(device, False)


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Says whether GPUs may multiply float32 in TensorFloat-32: faster, with 10 bits of fraction.

    They may unless this, or a session's configuration, says otherwise.

    Example:
        >>> tf.config.experimental.enable_tensor_float_32_execution(False)
    """
    settings.set_tensor_float_32(bool(enabled))


def tensor_float_32_execution_enabled() -> bool:
    """Whether GPUs may multiply float32 in TensorFloat-32."""
    return settings.current.tensor_float_32


def set_synchronous_execution(enable: bool | None) -> None:
    """Says whether every step is waited for (True), or only one that fetches something.

    None, the default, has no step waited for that fetches nothing and runs on an accelerator; the
    error of such a step is raised by a later call, and no step after it has changed anything.
    """
    settings.set_steps_ahead(None if not enable else 0)


def get_synchronous_execution() -> bool:
    """Whether every step is waited for, as :func:`set_synchronous_execution` has said."""
    return settings.current.steps_ahead == 0


def _require_gpu(device: Any) -> None:
    if not isinstance(device, PhysicalDevice) or device.device_type != "GPU":
        raise ValueError(f"{device!r} has no memory setting; GPUs of list_physical_devices have")


__all__ = [
    "LogicalDevice",
    "PhysicalDevice",
    "enable_tensor_float_32_execution",
    "get_memory_growth",
    "get_synchronous_execution",
    "list_logical_devices",
    "list_physical_devices",
    "set_memory_growth",
    "set_synchronous_execution",
    "tensor_float_32_execution_enabled",
]


def __dir__() -> list[str]:
    return __all__
