"""``tf.distribute``: so far, where the tasks of a cluster are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMESPACES = ("cluster_resolver",)


def __getattr__(name: str) -> Any:
    if name in _NAMESPACES:
        return import_module(f"runnel.distribute.{name}")
    raise AttributeError(
        f"module 'runnel.distribute' has no attribute {name!r}; it has {', '.join(_NAMESPACES)}"
    )


def __dir__() -> list[str]:
    return list(_NAMESPACES)
