"""The names and kinds of the devices on which a step can be placed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runnel.graph.device import DeviceSpec, parsed_device

LOCAL_TASK = "/job:localhost/replica:0/task:0"

# Accelerators come before the CPU where an operation has no wish of its own.
_PREFERENCE = {"TPU": 0, "GPU": 1, "CPU": 2}


@dataclass(frozen=True, slots=True, repr=False)
class LogicalDevice:
    """A device: its full name, its kind ("CPU", "GPU", "TPU"), its memory in bytes (0: unknown).

    ``hardware`` is equal for devices that share the same processor, such as several CPU devices
    of one process: work on one of them slows the others down.
    """

    name: str
    device_type: str
    index: int
    memory_limit_bytes: int = 0
    hardware: str = ""
    incarnation: int = 1
    """A number that another life of the device's task does not share."""

    @property
    def spec(self) -> DeviceSpec:
        return parsed_device(self.name)

    @property
    def short_name(self) -> str:
        """``CPU:0``: enough where all devices are of one task."""
        return f"{self.device_type}:{self.index}"

    def __repr__(self) -> str:
        memory = self.memory_limit_bytes
        return f"_DeviceAttributes({self.name}, {self.device_type}, {memory}, {self.incarnation})"

    def __str__(self) -> str:
        return self.name


class DeviceSet(Sequence[LogicalDevice]):
    """Devices in the order in which they are listed; the CPU of the client is the first.

    Example:
        >>> devices = DeviceSet([local_device("CPU", 0), local_device("CPU", 1)])
        >>> [d.short_name for d in devices.matching("/cpu:1")]
        ['CPU:1']
    """

    def __init__(self, devices: Sequence[LogicalDevice]) -> None:
        if not devices:
            raise ValueError("A session needs a device")
        self._devices = tuple(devices)
        preferred = sorted(
            self._devices, key=lambda d: (_PREFERENCE.get(d.device_type, 3), d.index)
        )
        self.by_preference = tuple(preferred)
        """Devices in the order in which an operation without a wish would take them."""
        self._matches: dict[str, tuple[LogicalDevice, ...]] = {"": self.by_preference}
        self.numbers = {device: number for number, device in enumerate(self._devices)}
        self.host = next((d for d in self._devices if d.device_type == "CPU"), self._devices[0])
        """Where values are that the caller feeds and fetches."""

    def matching(self, wish: str) -> tuple[LogicalDevice, ...]:
        """The devices that a (partial) name admits, preferred ones first."""
        found = self._matches.get(wish)
        if found is None:
            spec = parsed_device(wish)
            found = tuple(d for d in self.by_preference if spec.admits(d.spec))
            self._matches[wish] = found
        return found

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._devices[index]

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[LogicalDevice]:
        return iter(self._devices)

    def __repr__(self) -> str:
        return f"DeviceSet({[d.name for d in self._devices]})"


def local_device(kind: str, index: int, memory: int = 0, hardware: str = "") -> LogicalDevice:
    """A device of this process."""
    name = f"{LOCAL_TASK}/device:{kind}:{index}"
    return LogicalDevice(name, kind, index, memory, hardware or f"{kind}:{index}")
