"""TensorFlow's debugger hooks: they have the steps of a monitored session watched."""

from __future__ import annotations

from typing import Any

from runnel.debug.watch_options import WatchFunction
from runnel.debug.wrapper_sessions import (
    DumpingDebugWrapperSession,
    LocalCLIDebugWrapperSession,
    TensorFilter,
    new_root,
)
from runnel.graph.errors import UnimplementedError
from runnel.train.session_run_hook import WatchingHook


class LocalCLIDebugHook(WatchingHook):
    """Stops a job at the first tensor with an infinity or a NaN, or where a filter is true.

    See :class:`~runnel.debug.LocalCLIDebugWrapperSession`.

    Example:
        >>> estimator.train(input_fn, hooks=[tf.debug.LocalCLIDebugHook()])
    """

    def __init__(
        self, ui_type: str = "curses", dump_root: Any = None, thread_name_filter: str | None = None
    ) -> None:
        self._thread_name_filter = thread_name_filter
        self._filters: dict[str, TensorFilter] = {}

    def add_tensor_filter(self, filter_name: str, tensor_filter: TensorFilter) -> None:
        """Stops steps where ``tensor_filter(datum, value)`` is true."""
        self._filters[filter_name] = tensor_filter

    def watched(self, session: Any) -> Any:
        made = LocalCLIDebugWrapperSession(session, thread_name_filter=self._thread_name_filter)
        for name, found in self._filters.items():
            made.add_tensor_filter(name, found)
        return made


class DumpingDebugHook(WatchingHook):
    """Writes the values of a job's tensors into folders, one for each step.

    See :class:`~runnel.debug.DumpingDebugWrapperSession`.
    """

    def __init__(
        self,
        session_root: Any,
        watch_fn: WatchFunction | None = None,
        thread_name_filter: str | None = None,
        log_usage: bool = True,
    ) -> None:
        self._root = new_root(session_root)
        self._watch_fn = watch_fn
        self._thread_name_filter = thread_name_filter
        self._sessions = 0

    def watched(self, session: Any) -> Any:
        # A job that lost its session goes on with another: what there is stays.
        root = self._root / f"session_{self._sessions}" if self._sessions else self._root
        self._sessions += 1
        return DumpingDebugWrapperSession(session, root, self._watch_fn, self._thread_name_filter)


def _refused(name: str) -> type[Any]:
    """A class of TensorFlow's debugger that needs its plugin of TensorBoard."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        raise UnimplementedError(
            None,
            None,
            f"tf.debug.{name} sends tensors to TensorBoard's debugger plugin, which current "
            "TensorBoards do not have. tf.debug.LocalCLIDebugHook stops at the first NaN in the "
            "terminal, tf.debug.DumpingDebugHook writes tensors to files",
        )

    return type(name, (), {"__init__": __init__, "__doc__": "Needs a plugin that is no more."})


GrpcDebugHook = _refused("GrpcDebugHook")
GrpcDebugWrapperSession = _refused("GrpcDebugWrapperSession")
TensorBoardDebugHook = _refused("TensorBoardDebugHook")
TensorBoardDebugWrapperSession = _refused("TensorBoardDebugWrapperSession")
