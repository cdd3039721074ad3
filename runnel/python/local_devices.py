"""``device_lib``: the devices of this machine, described."""

from __future__ import annotations

from typing import Any, NamedTuple

from runnel.runtime.devices.devices import list_devices


class DeviceAttributes(NamedTuple):
    """What programs read of a device."""

    name: str
    device_type: str
    memory_limit: int
    physical_device_desc: str


def list_local_devices(session_config: Any = None) -> list[DeviceAttributes]:
    """The devices that steps of this process can use."""
    found = list_devices()
    return [DeviceAttributes(d.name, d.device_type, 0, f"device: {d.name}") for d in found]
