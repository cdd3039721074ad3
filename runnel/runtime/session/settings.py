"""Settings of the process, for sessions that have none of their own."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

STEPS_AHEAD_VARIABLE = "RUNNEL_STEPS_AHEAD"


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for the sessions of this process. Sessions notice when another takes its place."""

    steps_ahead: int | None = None
    """How many steps that fetch nothing may be on their way to a device; with 0 every step is
    waited for. None: as many as pay on an accelerator, and none on a CPU."""

    tensor_float_32: bool = True
    """Whether a GPU may multiply float32 numbers with 10 bits of their fractions."""


def _from_environment() -> Settings:
    given = os.environ.get(STEPS_AHEAD_VARIABLE, "").strip()
    if not given:
        return Settings()
    if not given.isdecimal():
        raise ValueError(f"{STEPS_AHEAD_VARIABLE} is {given!r}; it must be a number, such as 0")
    return Settings(steps_ahead=int(given))


current = _from_environment()


def set_steps_ahead(count: int | None) -> None:
    """Sets :attr:`Settings.steps_ahead` for what runs from now on."""
    global current
    current = replace(current, steps_ahead=count)


def set_tensor_float_32(enabled: bool) -> None:
    """Sets :attr:`Settings.tensor_float_32` for what runs from now on."""
    global current
    current = replace(current, tensor_float_32=enabled)


_config: Any = None


def default_config() -> Any:
    """The ``ConfigProto`` of sessions that are made without one; what ``tf.config`` changes."""
    global _config
    if _config is None:
        from tensorboard.compat.proto.config_pb2 import ConfigProto

        _config = ConfigProto()
    return _config


def copied_default() -> Any:
    """A copy of :func:`default_config` for a session; None while nobody has changed it."""
    if _config is None or not _config.ByteSize():
        return None
    copy = type(_config)()
    copy.CopyFrom(_config)
    return copy
