"""``tf.config``: the devices of this machine."""

from __future__ import annotations

from runnel import config_experimental as experimental

__all__ = ["experimental"]


def __dir__() -> list[str]:
    return __all__
