"""A step with hooks around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runnel.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)


def run_with_hooks(
    session: Any,
    hooks: Sequence[SessionRunHook],
    run: Callable[..., Any],
    fetches: Any,
    feed_dict: Any = None,
    options: Any = None,
    run_metadata: Any = None,
) -> tuple[Any, bool]:
    """A step by ``run``, with what the hooks ask for; its values, and: does a hook want to stop?"""
    context = SessionRunContext(SessionRunArgs(fetches, feed_dict, options), session)
    wanted: list[Any] = [fetches]
    places: dict[SessionRunHook, int] = {}
    feeds = dict(feed_dict or {})
    for hook in hooks:
        request = hook.before_run(context)
        if request is None:
            continue
        if not isinstance(request, SessionRunArgs):
            raise TypeError(f"{hook!r}.before_run returned {request!r}, not SessionRunArgs")
        if request.fetches is not None:
            places[hook] = len(wanted)
            wanted.append(request.fetches)
        _add_feeds(feeds, request.feed_dict, hook)
        options = _merged(options, request.options)
    if options is not None and run_metadata is None and options.trace_level:
        from tensorboard.compat.proto.config_pb2 import RunMetadata

        run_metadata = RunMetadata()
    found = run(wanted, feeds or None, options, run_metadata)
    for hook in hooks:
        result = found[places[hook]] if hook in places else None
        hook.after_run(context, SessionRunValues(result, options, run_metadata))
    return found[0], context.stop_requested


class HookedSession:
    """A session whose steps have hooks around them; who made it begins and ends them.

    Libraries know it by its name inside TensorFlow, ``_HookedSession``.
    """

    def __init__(self, sess: Any, hooks: Sequence[SessionRunHook]) -> None:
        self._sess = sess
        self._hooks = hooks
        self._stops = False

    @property
    def graph(self) -> Any:
        """The graph of the session."""
        return self._sess.graph

    def should_stop(self) -> bool:
        """True once a hook asked to stop."""
        return self._stops

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Runs a step, with its hooks."""
        found, stops = run_with_hooks(
            self._sess, self._hooks, self._sess.run, fetches, feed_dict, options, run_metadata
        )
        self._stops = self._stops or stops
        return found

    def close(self) -> None:
        """Closes the session."""
        self._sess.close()


_HookedSession = HookedSession


def _add_feeds(feeds: dict[Any, Any], more: Any, hook: SessionRunHook) -> None:
    for key, value in (more or {}).items():
        if key in feeds:
            raise RuntimeError(f"{key} is fed by the caller and by {hook!r}, or by two hooks")
        feeds[key] = value


def _merged(options: Any, more: Any) -> Any:
    """The options of a step that serve the caller and the hooks."""
    if more is None or options is None:
        return more if options is None else options
    merged = type(options)()
    merged.CopyFrom(options)
    merged.trace_level = max(options.trace_level, more.trace_level)
    merged.timeout_in_ms = max(options.timeout_in_ms, more.timeout_in_ms)
    merged.inter_op_thread_pool = max(options.inter_op_thread_pool, more.inter_op_thread_pool)
    merged.output_partition_graphs |= more.output_partition_graphs
    merged.report_tensor_allocations_upon_oom |= more.report_tensor_allocations_upon_oom
    watched = merged.debug_options.debug_tensor_watch_opts
    if more.debug_options.debug_tensor_watch_opts:
        watched.extend(more.debug_options.debug_tensor_watch_opts)
    return merged
