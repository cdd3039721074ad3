"""TensorFlow's debugger sessions: one for a terminal, one that writes values to files."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runnel.debug.dumps import StepDump
from runnel.debug.tensor_prompt import TensorPrompt, has_terminal
from runnel.debug.watch import Keep, StoppedStep, Watch, has_inf_or_nan
from runnel.debug.watch_options import WatchFunction, options_of
from runnel.debug.watched_session import WatchedSession
from runnel.graph.operation import Tensor
from runnel.runtime.session.session import BaseSession

TensorFilter = Callable[[Any, Any], bool]


class WatchedTensor:
    """What a tensor filter is told of a tensor."""

    def __init__(self, name: str) -> None:
        self.tensor_name = name
        self.node_name, _, slot = name.rpartition(":")
        self.output_slot = int(slot)
        self.debug_op = "DebugIdentity"


class LocalCLIDebugWrapperSession(WatchedSession):
    """A session whose steps stop where a filter is true, and can be looked at in the terminal.

    ``has_inf_or_nan`` is a filter from the beginning; :meth:`add_tensor_filter` adds others. Where
    there is a terminal, a prompt shows the values that the step had made; elsewhere its error is
    raised, which names the operation and the user's line. Nothing asks before steps that are well.

    Example:
        >>> sess = tf.debug.LocalCLIDebugWrapperSession(sess)
        >>> sess.add_tensor_filter("large", lambda datum, value: abs(value).max() > 1e6)
    """

    def __init__(
        self,
        sess: BaseSession,
        dump_root: Any = None,
        log_usage: bool = True,
        ui_type: str = "curses",
        thread_name_filter: str | None = None,
        config_file_path: Any = None,
    ) -> None:
        super().__init__(sess, self._stops, thread_name_filter=thread_name_filter)
        self._filters: dict[str, TensorFilter] = {"has_inf_or_nan": has_inf_or_nan}

    def add_tensor_filter(self, filter_name: str, tensor_filter: TensorFilter) -> None:
        """Stops steps where ``tensor_filter(datum, value)`` is true."""
        if not callable(tensor_filter):
            raise TypeError(f"The filter {filter_name!r} is {tensor_filter!r}, not a function")
        self._filters[filter_name] = tensor_filter

    def _stops(self, name: str, value: Any) -> bool:
        if value is None or not hasattr(value, "dtype"):
            return False
        datum = WatchedTensor(name)
        return any(found(datum, value) for found in self._filters.values())

    def run(
        self,
        fetches: Any,
        feed_dict: dict[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Like ``Session.run``, watched."""
        if not has_terminal():
            return super().run(fetches, feed_dict, options, run_metadata)
        watch = Watch(self._stops, None)
        arguments = (fetches, feed_dict, options, run_metadata)
        try:
            return self._run_watched(watch, *arguments)
        except StoppedStep as stopped:
            prompt = TensorPrompt(stopped, watch.seen, self._sess.graph)
            prompt.cmdloop()
            if not prompt.goes_on:
                raise
        return self._run_watched(Watch(None, None), *arguments)


class DumpingDebugWrapperSession(WatchedSession):
    """A session that writes the values of its steps' tensors into folders, one for each step.

    ``watch_fn(fetches, feeds)`` chooses tensors, by a :class:`~runnel.debug.WatchOptions`; without
    it there are all. ``tf.debug.DebugDumpDir`` reads a folder. Steps do not stop at a NaN.

    Example:
        >>> sess = tf.debug.DumpingDebugWrapperSession(
        ...     sess, "/tmp/dumps", lambda fetches, feeds: tf.debug.WatchOptions(
        ...         node_name_regex_whitelist="layer1/.*"))
    """

    def __init__(
        self,
        sess: BaseSession,
        session_root: Any,
        watch_fn: WatchFunction | None = None,
        thread_name_filter: str | None = None,
        pass_through_operrors: Any = None,
        log_usage: bool = True,
    ) -> None:
        super().__init__(sess, None, thread_name_filter=thread_name_filter)
        self._root = new_root(session_root)
        self._watch_fn = watch_fn
        self._numbers = itertools.count()

    def _keeps(self, fetches: Any, feed_dict: Any) -> Keep | None:
        watched = options_of(self._watch_fn, fetches, feed_dict)
        folder = self._root / f"run_{time.time_ns() // 1000}_{next(self._numbers)}"
        feeds = None if feed_dict is None else [*feed_dict]
        plan = self._sess._prepare(fetches, feed_dict)[0].plan
        dump = StepDump(folder, fetches, feeds, plan)

        def keep(tensor: Tensor, value: Any) -> None:
            if watched.matches(tensor):
                dump.write(tensor, value)

        return keep


def new_root(session_root: Any) -> Path:
    """A folder for dumps, which must be new or empty."""
    root = Path(os.fsdecode(os.fspath(session_root))).expanduser()
    if root.exists() and not root.is_dir():
        raise ValueError(f"session_root path points to a file: {root}")
    if root.is_dir() and any(root.iterdir()):
        raise ValueError(f"session_root path points to a non-empty directory: {root}")
    root.mkdir(parents=True, exist_ok=True)
    return root
