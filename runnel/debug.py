"""Steps that are watched: they stop at the first value that is not a number, and say where."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel.graph.errors import InvalidArgumentError, UnimplementedError
from runnel.passes.program.program import Node
from runnel.runtime.schedule.plan import StepPlan
from runnel.runtime.segment.tiers import NEVER
from runnel.runtime.session.session import BaseSession

__all__ = ["WatchedSession", "has_inf_or_nan"]


def __dir__() -> list[str]:
    return __all__


def _numbers(value: Any) -> np.ndarray | None:
    """``value`` as numbers that can be infinite; None if it has none."""
    if value is None or not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return None
    array = np.asarray(value)
    if array.dtype.kind in "fc":
        return array
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else None


def has_inf_or_nan(name: str, value: Any) -> bool:
    """True when a value has elements that are infinite, or not a number."""
    numbers = _numbers(value)
    return numbers is not None and not np.isfinite(numbers).all()


class WatchedSession:
    """A session whose steps are interpreted, operation by operation, and watched.

    A step stops at the first tensor for which ``stop_when(name, value)`` is true, by default one
    that has an infinity or a NaN. The error names the operation, the line of the program that made
    it, and what it was given; variables are as they were. ``names``, a regular expression, has
    :attr:`watched` keep the last values of tensors that match. The rest is as with the session.

    Example:
        >>> sess = tf.debug.WatchedSession(sess, names="layer1/.*")
        >>> sess.run(train_op)
        InvalidArgumentError: 'Log' (Log), created at train.py:12: Log:0 has 1 infinite ...
        >>> sess.watched["layer1/MatMul:0"]
    """

    def __init__(
        self,
        sess: BaseSession,
        stop_when: Callable[[str, Any], bool] | None = has_inf_or_nan,
        names: str | None = None,
    ) -> None:
        self._sess = sess
        self._stop_when = stop_when
        self._names = None if names is None else re.compile(names)
        self._plans: weakref.WeakKeyDictionary[StepPlan, StepPlan] = weakref.WeakKeyDictionary()
        self.watched: dict[str, np.ndarray] = {}
        """The last values of the tensors whose names match."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sess, name)

    def __enter__(self) -> WatchedSession:
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
        """Like ``Session.run``, watched; ``options`` count for nothing."""
        from runnel.runtime.session.feeds import check_feed

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
        watch = _Watch(self._stop_when, self._names, self.watched)
        for tensor, value in zip(prepared.feeds, feeds, strict=True):
            watch.note(tensor.name, value)
        return prepared.fetched(sess._run_step(plan, feeds, None, watch))

    def _interpreted(self, plan: StepPlan) -> StepPlan:
        """The same step as the user has described it: nothing compiled, nothing rewritten."""
        sess = self._sess
        tensors, targets, feeds, done = plan._build
        return StepPlan(
            tensors,
            targets,
            feeds,
            sess._task,
            sess._devices,
            NEVER,
            False,
            done,
            sess._options.raises,
        )


class _Watch:
    """Sees each operation of one step."""

    def __init__(
        self,
        stop_when: Callable[[str, Any], bool] | None,
        names: re.Pattern[str] | None,
        watched: dict[str, np.ndarray],
    ) -> None:
        self._stop_when = stop_when
        self._names = names
        self._watched = watched
        self._seen: dict[str, Any] = {}

    def note(self, name: str, value: Any) -> None:
        """Takes note of a value."""
        self._seen[name] = value
        if self._names is not None and value is not None and self._names.fullmatch(name):
            self._watched[name] = np.array(value)

    def operation(self, node: Node, start: int, end: int, outputs: Sequence[Any]) -> None:
        """An operation was interpreted."""
        for tensor, value in zip(node.op.outputs, outputs, strict=False):
            self.note(tensor.name, value)
            if self._stop_when is not None and self._stop_when(tensor.name, value):
                given = [self._given(t.name) for t in node.op.inputs]
                raise InvalidArgumentError(
                    None,
                    node.op,
                    f"The step stops here: {tensor.name} is {_described(value)}. "
                    + ("; ".join(given) or "It has no inputs"),
                )

    def _given(self, name: str) -> str:
        return f"{name} was {_described(self._seen.get(name))}"

    def segment(self, nodes: Sequence[Node], start: int, end: int, outputs: Sequence[Any]) -> None:
        """A segment ran that exists only compiled: its operations are not seen."""


def _described(value: Any) -> str:
    """A value for people: its type and shape, the range of its numbers, what is not one."""
    if value is None or not hasattr(value, "dtype"):
        return "not seen"
    array = np.asarray(value)
    what = f"{array.dtype.name} of shape {array.shape}"
    numbers = _numbers(value)
    if numbers is None or not numbers.size:
        return what if array.size != 1 else f"{what}: {array.item()!r}"
    nans, infinite = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    finite = np.abs(numbers[np.isfinite(numbers)]) if numbers.dtype.kind == "c" else None
    finite = numbers[np.isfinite(numbers)] if finite is None else finite
    if finite.size:
        what += f" with elements from {finite.min():.6g} to {finite.max():.6g}"
    bad = [f"{n} {word}" for n, word in ((nans, "NaN"), (infinite, "infinite")) if n]
    return what + (f", {' and '.join(bad)} of {numbers.size}" if bad else "")
