"""``tf.profiler``: parameters, time and memory, by scope or by type of operation."""

from typing import Any

from runnel.profiler.option_builder import ProfileOptionBuilder
from runnel.profiler.profile import profile
from runnel.profiler.profiler import Profiler

_MESSAGES = frozenset({"GraphNodeProto", "MultiGraphNodeProto"})

__all__ = [
    "GraphNodeProto",  # noqa: F822 (made by __getattr__)
    "MultiGraphNodeProto",  # noqa: F822 (made by __getattr__)
    "ProfileOptionBuilder",
    "Profiler",
    "profile",
]


def __getattr__(name: str) -> Any:
    """Messages, loaded when used: protocol buffers take a while."""
    if name not in _MESSAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from runnel.profiler.profile import message

    return message(name)


def __dir__() -> list[str]:
    return __all__
