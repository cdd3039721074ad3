"""Device names: TensorFlow's ``/job:worker/replica:0/task:1/device:GPU:0``, whole or in part."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

_TYPES = frozenset({"CPU", "GPU", "TPU", "XLA_CPU", "XLA_GPU"})
_SHORT_TYPES = frozenset({"CPU", "GPU", "TPU"})
"""Types that may be named without ``device:``, as in ``/cpu:0``."""
_FIELDS = ("job", "replica", "task", "device_type", "device_index")


class DeviceSpec:
    """A (possibly partial) device name, taken apart.

    A part that is None is left to others: to the scopes around it, then to placement.

    Example:
        >>> DeviceSpec.from_string("/job:ps/gpu:1").to_string()
        '/job:ps/device:GPU:1'
    """

    __slots__ = _FIELDS

    job: str | None
    replica: int | None
    task: int | None
    device_type: str | None
    device_index: int | None

    def __init__(
        self,
        job: str | None = None,
        replica: Any = None,
        task: Any = None,
        device_type: str | None = None,
        device_index: Any = None,
    ) -> None:
        self.job = None if job is None else str(job)
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        self.device_type = None if device_type is None else _known_type(str(device_type))
        self.device_index = None if device_index is None else int(device_index)

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Takes a device name apart; a ValueError says which part is not understood.

        Example:
            >>> DeviceSpec.from_string("/job:worker/task:3/cpu:0").task
            3
        """
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Becomes what ``spec`` says, and returns itself."""
        parsed: dict[str, Any] = {}
        for part in spec.split("/"):
            if part:
                _parse_part(part, spec, parsed)
        for field in _FIELDS:
            setattr(self, field, parsed.get(field))
        return self

    def merge_from(self, dev: DeviceSpec) -> None:
        """Overrides each part that ``dev`` names."""
        for field in _FIELDS:
            value = getattr(dev, field)
            if value is not None:
                setattr(self, field, value)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """A new spec: this one, with each part that ``dev`` names overridden."""
        merged = self.replace()
        merged.merge_from(dev)
        return merged

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """A new spec with the given parts in place of those of this one.

        Example:
            >>> DeviceSpec(job="ps", task=0).replace(task=1).to_string()
            '/job:ps/task:1'
        """
        unknown = kwargs.keys() - set(_FIELDS)
        if unknown:
            raise TypeError(f"DeviceSpec has no part {min(unknown)!r}; it has {', '.join(_FIELDS)}")
        return type(self)(**{field: getattr(self, field) for field in _FIELDS} | kwargs)

    def to_string(self) -> str:
        """The canonical name, such as ``/job:ps/device:CPU:0``."""
        text = ""
        for field in ("job", "replica", "task"):
            value = getattr(self, field)
            if value is not None:
                text += f"/{field}:{value}"
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            text += f"/device:{self.device_type}:{index}"
        return text

    def admits(self, other: DeviceSpec) -> bool:
        """True when every part that this spec names is the same in ``other``."""
        return all(
            (mine := getattr(self, field)) is None or mine == getattr(other, field)
            for field in _FIELDS
        )

    def conflicts_with(self, other: DeviceSpec) -> bool:
        """True when no device can satisfy both."""
        return any(
            (mine := getattr(self, field)) is not None
            and (theirs := getattr(other, field)) is not None
            and mine != theirs
            for field in _FIELDS
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceSpec):
            return NotImplemented
        return self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        return f"<DeviceSpec({', '.join(f'{f}={getattr(self, f)}' for f in _FIELDS)})>"


def _known_type(name: str) -> str:
    return name.upper() if name.upper() in _TYPES else name


def _parse_part(part: str, spec: str, parsed: dict[str, Any]) -> None:
    key, *values = part.split(":")
    try:
        if key == "job" and len(values) == 1 and values[0]:
            parsed["job"] = values[0]
            return
        if key in ("replica", "task") and len(values) == 1:
            parsed[key] = int(values[0])
            return
        if key == "device" and len(values) == 2 and values[0]:
            device_type, index = values
        elif key.upper() in _SHORT_TYPES and len(values) <= 1:
            device_type, index = key, values[0] if values else "*"
        else:
            raise ValueError
        number = None if index == "*" else int(index)
    except ValueError:
        raise ValueError(
            f"{part!r} in the device name {spec!r} is not understood; a device name is made of "
            "/job:<name>, /replica:<n>, /task:<n> and /device:<type>:<n>, each of them optional"
        ) from None
    if "device_type" in parsed:
        raise ValueError(f"The device name {spec!r} names a device type twice")
    parsed["device_type"], parsed["device_index"] = _known_type(device_type), number


@lru_cache(maxsize=4096)
def canonical_device(spec: str) -> str:
    """A device name in its canonical spelling."""
    return DeviceSpec.from_string(spec).to_string()


@lru_cache(maxsize=4096)
def parsed_device(name: str) -> DeviceSpec:
    """``DeviceSpec.from_string``, remembered; the result must not be changed."""
    return DeviceSpec.from_string(name)


@lru_cache(maxsize=4096)
def _merge(inner: str, outer: str) -> str:
    return parsed_device(outer).make_merged_spec(parsed_device(inner)).to_string()


def merge_device(outer: str, inner: Any) -> str:
    """The device name of ``inner`` within a scope that names ``outer``."""
    return _merge(device_name(inner), outer)


def device_name(device: Any) -> str:
    """The canonical name of what ``tf.device`` takes: a name or a DeviceSpec."""
    if isinstance(device, DeviceSpec):
        return device.to_string()
    if not isinstance(device, str):
        raise TypeError(f"A device must be a name, a DeviceSpec or a function, not {device!r}")
    return canonical_device(device)


def chosen_device(function: Callable[[Any], Any], op: Any) -> str:
    """What a device function gives for ``op``, which shows what inner scopes chose.

    The answer replaces that choice as a whole, as in TensorFlow; a function that only wants to
    add to it merges. None leaves it as it is.
    """
    chosen = function(op)
    return op.device if chosen is None else device_name(chosen)
