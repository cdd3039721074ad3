"""Sessions that take care of a training job: begin from a checkpoint, call hooks, recover."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from runnel.graph import errors
from runnel.train import live_model
from runnel.train.checkpoint_hook import CheckpointSaverHook
from runnel.train.coordinator import Coordinator
from runnel.train.hooked_session import run_with_hooks
from runnel.train.queue_runner import start_queue_runners
from runnel.train.scaffold import Scaffold
from runnel.train.session_creators import ChiefSessionCreator, SessionCreator
from runnel.train.session_run_hook import SessionRunHook, WatchingHook
from runnel.train.termination import Termination

logger = logging.getLogger("runnel")

_LOST = (errors.AbortedError, errors.UnavailableError)
"""Errors after which another session may succeed."""
_PAUSE_SECONDS = 1.0
"""How long a session that was lost while it began waits before it tries again."""


class _MonitoredSession:
    """What monitored sessions of both kinds are."""

    _recovers: bool

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._creator = session_creator or ChiefSessionCreator()
        self._hooks = list(hooks or ())
        self._grace = stop_grace_period_secs
        self._stop = False
        for hook in self._hooks:
            hook.begin()
        self._sess: Any = None
        self._running: Any = None
        """What runs steps: the session, or it as a hook watches it."""
        self._coord: Coordinator | None = None
        self._termination = Termination(self._request_stop)
        self._interrupted = False
        self._signals = contextlib.ExitStack()
        self._create()
        if self._leaves_on_sigterm():
            self._signals.enter_context(self._termination)

    @property
    def _is_leaving(self) -> bool:
        """True once a signal asked the program to end: only what saves its work is done then."""
        return self._interrupted or self._termination.told

    def _leaves_on_sigterm(self) -> bool:
        """True where the end of the session has something to save."""
        return any(isinstance(hook, CheckpointSaverHook) for hook in self._hooks)

    # The session ----------------------------------------------------------------------------

    def _create(self) -> None:
        while True:
            try:
                with self._termination.leaving_at_once():
                    self._sess = self._running = self._creator.create_session()
                self._coord = Coordinator(clean_stop_exception_types=(errors.OutOfRangeError,))
                start_queue_runners(self._sess, self._coord)
                for hook in self._hooks:
                    hook.after_create_session(self._sess, self._coord)
                for hook in self._hooks:
                    if isinstance(hook, WatchingHook):
                        self._running = hook.watched(self._running)
                return
            except _LOST as error:
                if not self._recovers:
                    raise
                logger.info("A session was lost while it began; another one is made: %s", error)
                with contextlib.suppress(*_LOST):
                    self._leave()
                with self._termination.leaving_at_once():
                    threading.Event().wait(_PAUSE_SECONDS)  # for who is not there yet

    def _leave(self) -> None:
        """Stops the threads of the session, and closes it."""
        sess, coord = self._sess, self._coord
        self._sess = self._coord = self._running = None
        try:
            if coord is not None:
                coord.request_stop()
                coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
        finally:
            if sess is not None:
                with contextlib.suppress(*_LOST):
                    sess.close()

    @property
    def graph(self) -> Any:
        """The graph of the session."""
        return None if self._sess is None else self._sess.graph

    def raw_session(self) -> Any:
        """The session inside: hooks do not see what it runs."""
        return self._sess

    def _is_closed(self) -> bool:
        return self._sess is None

    def should_stop(self) -> bool:
        """True when the loop of steps should end."""
        if self._sess is None or self._stop:
            return True
        return self._coord is not None and self._coord.should_stop()

    # Steps ----------------------------------------------------------------------------------

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Like ``Session.run``, with hooks; a session that is lost is made anew."""
        while True:
            if self._sess is None:
                if not self._recovers or self._stop:
                    raise RuntimeError("Run called even after should_stop requested.")
                self._create()
            self._termination.require_untold()
            try:
                return self._run_hooked(fetches, feed_dict, options, run_metadata)
            except _LOST as error:
                if not self._recovers:
                    raise
                logger.info("A session was lost; another one goes on: %s", error)
                with contextlib.suppress(*_LOST):  # of its other threads
                    self._leave()
            except Exception as error:
                if self._termination.ended(error):
                    self._termination.require_untold()
                # What ended the input is the cause, not that a queue was closed for it.
                if self._coord is not None and not isinstance(error, errors.OutOfRangeError):
                    self._coord.raise_requested_exception()
                raise

    def _run_hooked(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        found, stops = run_with_hooks(
            self._sess, self._hooks, self._run_watched, fetches, feed_dict, options, run_metadata
        )
        self._stop = self._stop or stops
        return found

    def _run_watched(self, *step: Any) -> Any:
        with self._termination.watching(self._sess):
            self._termination.require_untold()
            return self._running.run(*step)

    def run_step_fn(self, step_fn: Callable[[MonitoredStep], Any]) -> Any:
        """Calls ``step_fn`` with a :class:`MonitoredStep`: several things may be one step."""
        with contextlib.suppress(StopIteration):
            return step_fn(MonitoredStep(self.raw_session(), self.run, self._request_stop))
        return None

    def _request_stop(self) -> None:
        self._stop = True

    # The end --------------------------------------------------------------------------------

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        expected = (errors.OutOfRangeError, StopIteration)
        ended = kind is not None and issubclass(kind, expected)
        # Ctrl-C is a wish to stop: what the hooks do at the end, saving above all, is done.
        wished = kind is not None and issubclass(kind, KeyboardInterrupt | SystemExit)
        self._interrupted = wished
        if kind is not None and not (ended or wished or issubclass(kind, _LOST)):
            live_model.failed()
        self._close(call_end=kind is None or ended or wished)
        return ended

    def close(self) -> None:
        """Has the hooks do what they do at the end, and closes the session."""
        self._close(call_end=True)

    def _close(self, call_end: bool) -> None:
        with self._signals:
            try:
                if call_end and self._sess is not None:
                    for hook in self._hooks:
                        hook.end(self._sess)
            finally:
                self._stop = True
                self._leave()


class MonitoredStep:
    """What a function of ``run_step_fn`` does its step with."""

    def __init__(
        self, session: Any, run_with_hooks_fn: Callable[..., Any], stop: Callable[[], None]
    ) -> None:
        self._session = session
        self._run_with_hooks_fn = run_with_hooks_fn
        self._stop = stop

    @property
    def session(self) -> Any:
        """The session, without hooks."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Like ``MonitoredSession.run``."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the function, and has it be the last step."""
        self._stop()
        raise StopIteration("step_fn has requested the iterations to stop.")


class MonitoredSession(_MonitoredSession):
    """A session that calls hooks, and is made anew where it is lost.

    With a :class:`CheckpointSaverHook` Ctrl-C and SIGTERM save and leave.

    Example:
        >>> with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(1000)]) as sess:
        ...     while not sess.should_stop():
        ...         sess.run(train_op)
    """

    _recovers = True
    StepContext = MonitoredStep


class SingularMonitoredSession(_MonitoredSession):
    """A session that calls hooks, and is not made anew: an error ends it."""

    _recovers = False
    StepContext = MonitoredStep

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path
        )
        super().__init__(creator, hooks, stop_grace_period_secs)
