"""The devices of this process, and the XLA device behind each.

JAX knows the accelerators, but importing it costs a third of a second, and a program that only
interprets never needs it. So runnel asks JAX only where an accelerator may be present.

XLA fixes the number of its host devices when it starts (``XLA_FLAGS``), and a library must not
change that for the whole process. So ``ConfigProto.device_count={"CPU": 4}`` gives four *logical*
devices, each with its own name, state and place in the schedule. They take turns on the XLA host
devices that exist: one by default, four if the program was started with
``XLA_FLAGS=--xla_force_host_platform_device_count=4``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from runnel.graph.device_set import DeviceSet, LogicalDevice, local_device

logger = logging.getLogger("runnel")

_started = False
"""True when runnel has made JAX start its backends; its memory settings are then fixed."""


def _accelerator_possible() -> bool:
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms:
        return platforms.split(",")[0] != "cpu"
    nvidia = Path("/dev/nvidia0").exists() or Path("/proc/driver/nvidia/version").exists()
    return nvidia or Path("/dev/kfd").exists() or Path("/dev/accel0").exists()


def kind_of(platform: str) -> str:
    """The type, in the names of devices, of those that JAX calls ``platform``."""
    return {"cpu": "CPU", "tpu": "TPU"}.get(platform, "GPU")


@lru_cache(maxsize=1)
def _accelerators() -> tuple[Any, ...]:
    """The accelerators that JAX knows in this process, in its order."""
    if not _accelerator_possible():
        return ()
    import jax

    global _started
    _started = True
    return tuple(device for device in jax.local_devices() if device.platform != "cpu")


@lru_cache(maxsize=1)
def _host_devices() -> tuple[Any, ...]:
    """XLA's host devices."""
    import jax

    global _started
    _started = True
    return tuple(jax.local_devices(backend="cpu"))


@lru_cache(maxsize=1)
def compiles_for_host() -> bool:
    """False where JAX was started without its CPU backend (``JAX_PLATFORMS=cuda``)."""
    if not _accelerators():
        return True
    try:
        return bool(_host_devices())
    except RuntimeError:
        return False


def xla_device(device: LogicalDevice) -> Any:
    """The JAX device behind a logical one."""
    if device.device_type == "CPU":
        hosts = _host_devices()
        return hosts[device.index % len(hosts)]
    same_kind = [d for d in _accelerators() if kind_of(d.platform) == device.device_type]
    # "GPU:1 of those that a session sees" may be GPU:3 of the machine.
    position = int(device.hardware.rpartition(":")[2])
    return same_kind[position]


def session_devices(device_count: Mapping[str, int] | None = None, visible: str = "") -> DeviceSet:
    """The devices of a session: CPUs, then accelerators.

    ``device_count`` limits the accelerators of a kind and says how many CPU devices there are
    (one by default); ``visible`` (``GPUOptions.visible_device_list``) chooses among the GPUs.
    """
    return _session_devices(tuple(sorted((device_count or {}).items())), visible)


@lru_cache(maxsize=64)
def _session_devices(device_count: tuple[tuple[str, int], ...], visible: str) -> DeviceSet:
    counts = dict(device_count)
    for kind, count in counts.items():
        if count < 0:
            raise ValueError(
                f"ConfigProto.device_count[{kind!r}] is {count}; it cannot be negative"
            )
    # All CPU devices share the machine's processor; there is always one, for the host's work.
    memory = host_memory()
    devices = [
        local_device("CPU", index, memory, "host") for index in range(max(counts.get("CPU", 1), 1))
    ]
    by_kind: dict[str, list[Any]] = {}
    wanted = any(counts.get(kind, 1) for kind in ("GPU", "TPU"))
    for device in _accelerators() if wanted else ():
        by_kind.setdefault(kind_of(device.platform), []).append(device)
    for kind, found in by_kind.items():
        chosen = list(range(len(found)))
        if kind == "GPU" and visible:
            chosen = _visible(visible, len(found))
        for index, position in enumerate(chosen[: counts.get(kind, len(chosen))]):
            limit = (found[position].memory_stats() or {}).get("bytes_limit", 0)
            devices.append(local_device(kind, index, limit, f"{kind}:{position}"))
    return DeviceSet(devices)


def _visible(visible: str, count: int) -> list[int]:
    try:
        chosen = [int(part) for part in visible.split(",") if part.strip()]
    except ValueError:
        chosen = [-1]
    if any(not 0 <= position < count for position in chosen):
        raise ValueError(
            f"GPUOptions.visible_device_list is {visible!r}; it must list numbers of the {count} "
            "GPUs of this machine, such as '0,1'"
        )
    return chosen


def host_memory() -> int:
    """The bytes of this machine's memory; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on this system
        return 0


def is_jax_default(device: LogicalDevice) -> bool:
    """True for the device that JAX computes on if it is not told otherwise."""
    if device.device_type == "CPU":
        return device.index == 0 and not _accelerators()
    return device.hardware.endswith(":0")


def list_devices() -> list[LogicalDevice]:
    """The devices that a session without a configuration can use."""
    return list(session_devices())


def apply_gpu_options(gpu_options: Any) -> None:
    """Passes the memory settings of ``GPUOptions`` on to XLA, if it has not started yet.

    XLA reads them once, from its environment, when it starts; they are for the whole process. What
    the program's environment says already is left alone.
    """
    wishes = {}
    if gpu_options.allow_growth:
        wishes["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if gpu_options.per_process_gpu_memory_fraction:
        fraction = gpu_options.per_process_gpu_memory_fraction
        wishes["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{fraction:g}"
    unmet = {name: value for name, value in wishes.items() if os.environ.get(name) != value}
    if not unmet or not _accelerator_possible():
        return
    setting = " ".join(f"{name}={value}" for name, value in unmet.items())
    if _started:
        _warn_once(
            "GPUOptions come too late: XLA has started and keeps its memory settings. Make the "
            f"session earlier in the program, or start it with {setting}"
        )
        return
    for name, value in unmet.items():
        os.environ.setdefault(name, value)
    if "jax" in sys.modules:
        _warn_once(
            "JAX was imported before this session was made. If it has been used, it keeps its "
            f"memory settings, and GPUOptions change nothing; starting the program with {setting} "
            "always works"
        )


@lru_cache(maxsize=16)
def _warn_once(message: str) -> None:
    logger.warning(message)
