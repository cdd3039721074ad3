"""``tf.summary``: what TensorBoard shows."""

from typing import Any

from runnel.summary.file_writer import FileWriter, FileWriterCache
from runnel.summary.summaries import (
    all_v2_summary_ops,
    audio,
    get_summary_description,
    histogram,
    image,
    initialize,
    merge,
    merge_all,
    scalar,
    tensor_summary,
    text,
)

__all__ = [
    "Event",
    "FileWriter",
    "FileWriterCache",
    "SessionLog",
    "Summary",
    "SummaryDescription",
    "TaggedRunMetadata",
    "all_v2_summary_ops",
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "initialize",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]


_LAZY = {
    **dict.fromkeys(("Event", "SessionLog", "TaggedRunMetadata"), "event_pb2"),
    **dict.fromkeys(("Summary", "SummaryDescription"), "summary_pb2"),
}


def __getattr__(name: str) -> Any:
    """Messages, loaded when used: protocol buffers take a while."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tensorboard.compat.proto.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return __all__
