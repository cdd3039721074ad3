"""Hooks: what is done around the steps of a monitored session."""

from __future__ import annotations

from typing import Any, NamedTuple


class SessionRunArgs(NamedTuple):
    """What a hook, or the caller, has a step run."""

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a step has given a hook: the values of its fetches, and how it was run."""

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """A step that is about to run, or has run; a hook can ask that it be the last."""

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """What the caller has asked for."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session that runs the step."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """True once a hook has asked for an end."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Asks that this be the last step."""
        self._stop_requested = True


class SessionRunHook:
    """Something that is done around each step; subclasses override what they need.

    Example:
        >>> class Watch(tf.train.SessionRunHook):
        ...     def before_run(self, run_context):
        ...         return tf.train.SessionRunArgs(loss)
        ...     def after_run(self, run_context, run_values):
        ...         print(run_values.results)
    """

    def begin(self) -> None:
        """Called once, before the session is made: the graph can still be changed."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when a session has been made, also after one was lost; the graph is final."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each step; what it returns is run with the step."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each step that has succeeded."""

    def end(self, session: Any) -> None:
        """Called at the end, unless an error ended the session."""


class WatchingHook(SessionRunHook):
    """A hook that sees inside of steps: what it makes of a session runs them."""

    def watched(self, session: Any) -> Any:
        """``session``, which runs the steps of the caller and of all hooks, watched."""
        raise NotImplementedError
