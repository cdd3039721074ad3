"""Limits the memory of a process that only serves.

If a step asks for more than the machine has left, the kernel ends the whole task, and with it every
client's variables. With a limit the allocation fails, and so only that step.
"""

from __future__ import annotations

import contextlib
import os
import sys

VARIABLE = "RUNNEL_MOST_MEMORY_BYTES"
_LEAST = 64 << 20
"""What may always be added: errors must be told, too."""


class MemoryLimit:
    """Keeps the limit on this process's data (``RLIMIT_DATA``) at what the machine has left.

    ``RUNNEL_MOST_MEMORY_BYTES`` names another limit; 0 is none. A limit that the process was
    started with stays. At the end of a ``with`` block there is none but that.
    """

    def __init__(self) -> None:
        self._given = os.environ.get(VARIABLE)
        self._first: tuple[int, int] | None = None
        if sys.platform == "linux" and self._given != "0":
            import resource

            self._first = resource.getrlimit(resource.RLIMIT_DATA)

    def __enter__(self) -> MemoryLimit:
        self.refresh()
        return self

    def __exit__(self, *_: object) -> None:
        if self._first is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_DATA, self._first)

    def refresh(self) -> None:
        """Sets the limit anew: others have taken memory or given it back."""
        if self._first is None:
            return
        import resource

        soft, hard = self._first
        with contextlib.suppress(OSError, ValueError):  # a system without these files
            bounds = [self._most(), *(n for n in (soft, hard) if n != resource.RLIM_INFINITY)]
            resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), hard))

    def _most(self) -> int:
        if self._given:
            return int(self._given)
        left = _kilobytes("/proc/meminfo", "MemAvailable", "MemTotal")
        room = min(left["MemAvailable"] - left["MemTotal"] // 20, _left_of_group())
        return _kilobytes("/proc/self/status", "VmData")["VmData"] + max(room, _LEAST)


def _kilobytes(path: str, *names: str) -> dict[str, int]:
    """Lines such as ``VmData: 10 kB`` of a file of the kernel's, in bytes."""
    with open(path) as file:
        lines = (line.split(":") for line in file)
        return {name: int(rest.split()[0]) << 10 for name, rest in lines if name in names}


def _left_of_group() -> int:
    """What is left of the memory of the control group (a container's), if it has a limit."""
    folder = "/sys/fs/cgroup"
    try:
        with open(f"{folder}/memory.max") as most, open(f"{folder}/memory.current") as current:
            return int(most.read()) - int(current.read())
    except (OSError, ValueError):  # no group, or "max"
        return sys.maxsize
