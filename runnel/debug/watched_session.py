"""Sessions whose steps are watched: they stop at the first value that is not a number."""

from __future__ import annotations

import re
import threading
import weakref
from typing import Any

import numpy as np

from runnel.debug.watch import Keep, StopWhen, Watch, has_inf_or_nan
from runnel.graph.errors import UnimplementedError
from runnel.graph.operation import Tensor
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.session.feeds import check_feed
from runnel.runtime.session.session import BaseSession
from runnel.runtime.state.options import NEVER, SessionOptions


class WatchedSession:
    """A session whose steps are interpreted, operation by operation, and watched.

    A step stops at the first tensor for which ``stop_when(name, value)`` is true, by default one
    that has an infinity or a NaN. The error names the operation, the line of the program that made
    it, and what it was given; variables are as they were. ``names``, a regular expression, has
    :attr:`watched` keep the last values of tensors that match. Steps on threads whose names do not
    match ``thread_name_filter`` are not watched. The rest is as with the session.

    Example:
        >>> sess = tf.debug.WatchedSession(sess, names="layer1/.*")
        >>> sess.run(train_op)
        InvalidArgumentError: 'Log' (Log), created at train.py:12: Log:0 has 1 infinite ...
        >>> sess.watched["layer1/MatMul:0"]
    """

    def __init__(
        self,
        sess: BaseSession,
        stop_when: StopWhen | None = has_inf_or_nan,
        names: str | None = None,
        thread_name_filter: str | None = None,
    ) -> None:
        if isinstance(sess, WatchedSession):
            raise TypeError(f"{sess!r} is watched already; one wrapper, or hook, can watch it")
        self._sess = sess
        self._stop_when = stop_when
        self._names = None if names is None else re.compile(names)
        self._threads = None if thread_name_filter is None else re.compile(thread_name_filter)
        self._plans: weakref.WeakKeyDictionary[StepPlan, StepPlan] = weakref.WeakKeyDictionary()
        self.watched: dict[str, np.ndarray] = {}
        """The last values of the tensors whose names match."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sess, name)

    def __enter__(self) -> Any:
        self._sess.__enter__()  # type: ignore[attr-defined]
        return self

    def __exit__(self, *error: Any) -> None:
        self._sess.__exit__(*error)  # type: ignore[attr-defined]

    def run(
        self,
        fetches: Any,
        feed_dict: dict[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Like ``Session.run``, watched."""
        if self._threads and not self._threads.match(threading.current_thread().name):
            return self._sess.run(fetches, feed_dict, options, run_metadata)
        watch = Watch(self._stop_when, self._keeps(fetches, feed_dict))
        return self._run_watched(watch, fetches, feed_dict, options, run_metadata)

    def _keeps(self, fetches: Any, feed_dict: Any) -> Keep | None:
        """What is done with the values of the next step."""
        return None if self._names is None else self._keep_by_name

    def _keep_by_name(self, tensor: Tensor, value: Any) -> None:
        assert self._names is not None
        if self._names.fullmatch(tensor.name):
            self.watched[tensor.name] = np.array(value)

    def _run_watched(
        self,
        watch: Watch,
        fetches: Any,
        feed_dict: dict[Any, Any] | None,
        options: Any,
        run_metadata: Any,
    ) -> Any:
        """The values of a step that ``watch`` sees."""
        sess = self._sess
        sess._require_open()
        prepared, fed = sess._prepare(fetches, feed_dict)
        given = prepared.plan
        if not isinstance(given, StepPlan):
            raise UnimplementedError(
                None,
                None,
                f"Steps on {sess.sess_str} cannot be watched, only local ones",
            )
        plan = self._plans.get(given)
        if plan is None:
            plan = self._plans[given] = self._interpreted(given)
        feeds = [check_feed(tensor, fed[tensor]) for tensor in prepared.feeds]
        for tensor, value in zip(prepared.feeds, feeds, strict=True):
            watch.note(tensor, value)
        return prepared.fetched(sess._run_with_options(plan, feeds, options, run_metadata, watch))

    def _interpreted(self, plan: StepPlan) -> StepPlan:
        """The same step as the user has described it: nothing compiled, nothing rewritten."""
        sess = self._sess
        tensors, targets, feeds, done = plan._build
        raises = sess._options.raises
        options = SessionOptions(jit=NEVER, optimizer=False, raises=raises, steps_ahead=0)
        return StepPlan(tensors, targets, feeds, sess._task, sess._devices, options, done)
