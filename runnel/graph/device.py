"""Device names: TensorFlow's ``/job:worker/replica:0/task:1/device:GPU:0``, whole or in part."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_PART = re.compile(r"^(job|replica|task|device|cpu|gpu|tpu):(.+)$", re.IGNORECASE)
_JOB = re.compile(r"^[A-Za-z][A-Za-z0-9_]*$")


class DeviceSpec:
    """A (possibly partial) device name, taken apart.

    Example:
        >>> DeviceSpec.from_string("/job:ps/gpu:1").to_string()
        '/job:ps/device:GPU:1'
    """

    __slots__ = ("job", "replica", "task", "device_type", "device_index")

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job = job
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        self.device_type = device_type.upper() if device_type else None
        self.device_index = None if device_index is None else int(device_index)

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Takes a device name apart; a ValueError says which part is not understood."""
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        self.job = self.replica = self.task = self.device_type = self.device_index = None
        for part in spec.split("/"):
            if part:
                self._parse_part(part, spec)
        return self

    def _parse_part(self, part: str, spec: str) -> None:
        match = _PART.match(part)
        if match is None:
            raise ValueError(f"{part!r} in the device name {spec!r} is not understood")
        key, value = match.group(1).lower(), match.group(2)
        try:
            if key == "job":
                if not _JOB.match(value):
                    raise ValueError
                self.job = value
            elif key in ("replica", "task"):
                setattr(self, key, int(value))
            else:
                kind, _, index = value.rpartition(":") if key == "device" else (key, "", value)
                if key == "device" and not kind:
                    kind, index = value, "*"
                self.device_type = kind.upper()
                self.device_index = None if index == "*" else int(index)
        except ValueError:
            raise ValueError(f"{part!r} in the device name {spec!r} is not understood") from None

    def merge_from(self, other: DeviceSpec) -> None:
        """Overrides each part that ``other`` names."""
        for field in ("job", "replica", "task", "device_type", "device_index"):
            value = getattr(other, field)
            if value is not None:
                setattr(self, field, value)
                if field == "device_type" and other.device_index is None:
                    self.device_index = None

    def to_string(self) -> str:
        text = ""
        for field in ("job", "replica", "task"):
            value = getattr(self, field)
            if value is not None:
                text += f"/{field}:{value}"
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            text += f"/device:{self.device_type}:{index}"
        return text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        return f"DeviceSpec({self.to_string()!r})"


@lru_cache(maxsize=4096)
def canonical_device(spec: str) -> str:
    """A device name in its canonical spelling."""
    return DeviceSpec.from_string(spec).to_string()


@lru_cache(maxsize=4096)
def _merge(inner: str, outer: str) -> str:
    merged = DeviceSpec.from_string(outer)
    merged.merge_from(DeviceSpec.from_string(inner))
    return merged.to_string()


def merge_device(outer: str, inner: Any) -> str:
    """The device name of ``inner`` within a scope that names ``outer``."""
    if isinstance(inner, DeviceSpec):
        inner = inner.to_string()
    if not isinstance(inner, str):
        raise TypeError(f"A device must be a name, a DeviceSpec or a function, not {inner!r}")
    return _merge(inner, outer)
