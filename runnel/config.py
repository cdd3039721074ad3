"""``tf.config``: the devices of this machine, and what sessions do that have no configuration."""

from __future__ import annotations

from runnel import config_experimental as experimental
from runnel import config_optimizer as optimizer
from runnel import config_threading as threading
from runnel.runtime.session import settings


def set_soft_device_placement(enabled: bool) -> None:
    """Says whether an operation runs elsewhere if its device is not there, or has no kernel."""
    settings.default_config().allow_soft_placement = bool(enabled)


def get_soft_device_placement() -> bool:
    """What :func:`set_soft_device_placement` has said."""
    return bool(settings.default_config().allow_soft_placement)


__all__ = [
    "experimental",
    "get_soft_device_placement",
    "optimizer",
    "set_soft_device_placement",
    "threading",
]


def __dir__() -> list[str]:
    return __all__
