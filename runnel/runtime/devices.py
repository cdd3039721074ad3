"""The devices of this process.

JAX knows the accelerators, but importing it costs a third of a second; a program that only
interprets never needs it. So JAX is asked only where an accelerator may be present.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class DeviceAttributes:
    """A device: its name, type and memory in bytes (0 when unknown)."""

    name: str
    device_type: str
    memory_limit_bytes: int = 0


def _accelerator_possible() -> bool:
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms:
        return platforms.split(",")[0] != "cpu"
    nvidia = Path("/dev/nvidia0").exists() or Path("/proc/driver/nvidia/version").exists()
    return nvidia or Path("/dev/kfd").exists() or Path("/dev/accel0").exists()


@lru_cache(maxsize=1)
def default_device_kind() -> str:
    """ "CPU", "GPU" or "TPU"."""
    if not _accelerator_possible():
        return "CPU"
    import jax

    return _kind(jax.devices()[0].platform)


def _kind(platform: str) -> str:
    return {"cpu": "CPU", "tpu": "TPU"}.get(platform, "GPU")


def list_devices() -> list[DeviceAttributes]:
    """The devices that a session can use."""
    prefix = "/job:localhost/replica:0/task:0/device:"
    devices = [DeviceAttributes(f"{prefix}CPU:0", "CPU")]
    if _accelerator_possible():
        jax: Any = __import__("jax")
        for index, device in enumerate(jax.devices()):
            if device.platform != "cpu":
                kind = _kind(device.platform)
                limit = (device.memory_stats() or {}).get("bytes_limit", 0)
                devices.append(DeviceAttributes(f"{prefix}{kind}:{index}", kind, limit))
    return devices
