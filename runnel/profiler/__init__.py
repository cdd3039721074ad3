"""``tf.profiler``: parameters, time and memory, by scope or by type of operation."""

from typing import Any

from runnel.profiler.advice import advise
from runnel.profiler.op_log import write_op_log
from runnel.profiler.option_builder import ProfileOptionBuilder
from runnel.profiler.profile import profile
from runnel.profiler.profiler import Profiler

_MESSAGES = frozenset({"AdviceProto", "GraphNodeProto", "MultiGraphNodeProto", "OpLogProto"})

__all__ = [
    "AdviceProto",  # noqa: F822 (made by __getattr__)
    "GraphNodeProto",  # noqa: F822 (made by __getattr__)
    "MultiGraphNodeProto",  # noqa: F822 (made by __getattr__)
    "OpLogProto",  # noqa: F822 (made by __getattr__)
    "ProfileOptionBuilder",
    "Profiler",
    "advise",
    "profile",
    "write_op_log",
]


def __getattr__(name: str) -> Any:
    """Messages, loaded when used: protocol buffers take a while."""
    if name not in _MESSAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from runnel.profiler.counts import message

    return message(name)


def __dir__() -> list[str]:
    return __all__
