"""``tf.debug``: steps that are watched, in the terminal or into files; TensorFlow's ``tfdbg``."""

from runnel.debug.dumps import DebugDumpDir, DebugTensorDatum
from runnel.debug.hooks import (
    DumpingDebugHook,
    GrpcDebugHook,
    GrpcDebugWrapperSession,
    LocalCLIDebugHook,
    TensorBoardDebugHook,
    TensorBoardDebugWrapperSession,
)
from runnel.debug.watch import has_inf_or_nan
from runnel.debug.watch_options import WatchOptions
from runnel.debug.watched_session import WatchedSession
from runnel.debug.wrapper_sessions import DumpingDebugWrapperSession, LocalCLIDebugWrapperSession

__all__ = [
    "DebugDumpDir",
    "DebugTensorDatum",
    "DumpingDebugHook",
    "DumpingDebugWrapperSession",
    "GrpcDebugHook",
    "GrpcDebugWrapperSession",
    "LocalCLIDebugHook",
    "LocalCLIDebugWrapperSession",
    "TensorBoardDebugHook",
    "TensorBoardDebugWrapperSession",
    "WatchOptions",
    "WatchedSession",
    "has_inf_or_nan",
]


def __dir__() -> list[str]:
    return __all__
