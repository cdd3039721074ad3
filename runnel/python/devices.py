"""``device``: names of devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.device import DeviceSpec

__all__ = ["DeviceSpec", "canonical_name", "check_valid", "is_device_spec", "merge_device"]


def canonical_name(device: Any) -> str:
    """The whole form of a name, such as ``/job:ps/device:CPU:0`` for ``/job:ps/cpu:0``."""
    if device is None:
        return ""
    return _spec(device).to_string()


def check_valid(spec: str) -> None:
    """A ValueError if ``spec`` names no device."""
    DeviceSpec.from_string(spec)


def is_device_spec(obj: Any) -> bool:
    """True for a :class:`tf.DeviceSpec`."""
    return isinstance(obj, DeviceSpec)


def merge_device(spec: Any) -> Callable[[Any], str]:
    """A function for ``tf.device``: an operation's own device, and the rest from ``spec``."""
    outer = _spec(spec)

    def merged(op: Any) -> str:
        return outer.make_merged_spec(_spec(op.device or "")).to_string()

    return merged


def _spec(device: Any) -> DeviceSpec:
    return device if isinstance(device, DeviceSpec) else DeviceSpec.from_string(device)
