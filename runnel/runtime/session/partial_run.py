"""Partial runs: one step, fed and fetched in several calls.

The values that one call has computed are kept and fed to the calls that follow, so every operation
of the step runs at most once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel.graph import errors
from runnel.graph.operation import Operation, Tensor
from runnel.passes.program.prune import prune
from runnel.runtime.session.feeds import check_feed, expand_feeds, fed_tensors
from runnel.runtime.session.fetches import expand_fetches
from runnel.runtime.state.step_context import LOOK_SECONDS, now

if TYPE_CHECKING:
    from runnel.runtime.session.session import BaseSession

RunPlan = Callable[[Any, list[Any]], list[Any]]
"""Runs a plan with the values that it is fed."""


class PartialRun:
    """The handle of a partial run."""

    def __init__(self, session: BaseSession, fetches: Any, feeds: list[Any]) -> None:
        if isinstance(fetches, list | tuple) and not fetches:
            raise errors.InvalidArgumentError(None, None, "partial_run_setup needs some fetches")
        self._session = session
        graph = session.graph
        self._may_fetch = set(expand_fetches(graph, fetches)[0])
        self._may_feed = {tensor for fed in feeds for tensor in fed_tensors(graph, fed)}
        self._fetched: set[Any] = set()
        self._known: dict[Tensor, Any] = {}
        self._done: set[Operation] = set()
        # One part runs at a time: parts build on each other's values.
        self._lock = threading.Lock()

    def run(
        self,
        session: BaseSession,
        fetches: Any,
        feed_dict: dict[Any, Any],
        run_plan: RunPlan | None = None,
    ) -> Any:
        """Runs what ``fetches`` need of what has not run yet, by ``run_plan`` if it is given."""
        if session is not self._session:
            raise ValueError("This handle was made by another session.")
        graph = session.graph
        elements, rebuild = expand_fetches(graph, fetches)
        for element in elements:
            if element not in self._may_fetch:
                raise self._invalid(
                    f"{element.name} was not listed in the fetches of partial_run_setup"
                )
            if element in self._fetched:
                raise self._invalid(f"{element.name} has already been fetched")
        with self._alone(session):
            for tensor, value in expand_feeds(graph, feed_dict).items():
                if tensor not in self._may_feed:
                    raise self._invalid(
                        f"{tensor.name} was not listed in the feeds of partial_run_setup"
                    )
                if tensor in self._known:
                    raise self._invalid(f"{tensor.name} has already been fed")
                self._known[tensor] = check_feed(tensor, value)
            self._advance(session, elements, run_plan)
            self._fetched.update(elements)
        # Copies: a later part takes what this one has computed, whatever the caller does to it.
        return rebuild(lambda element: _copy(self._known.get(element)))

    @property
    def is_complete(self) -> bool:
        """True when everything that was listed has been fetched."""
        return self._fetched >= self._may_fetch

    @contextmanager
    def _alone(self, session: BaseSession) -> Iterator[None]:
        """Waits until no other part runs, as long as the session's steps may take."""
        timeout_ms = session._options.timeout_ms
        deadline = now() + timeout_ms / 1000 if timeout_ms > 0 else inf
        while not self._lock.acquire(timeout=LOOK_SECONDS):
            if session._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            if now() > deadline:
                message = "Partial run: the step ran out of time while another part of it ran"
                raise errors.DeadlineExceededError(None, None, message)
        try:
            yield
        finally:
            self._lock.release()

    def _advance(self, session: BaseSession, elements: list[Any], run_plan: RunPlan | None) -> None:
        wanted = [e for e in elements if isinstance(e, Tensor) and e not in self._known]
        targets = [e for e in elements if isinstance(e, Operation) and e not in self._done]
        if not wanted and not targets:
            return
        program = prune(wanted, targets, self._known, self._done)
        ops = [node.op for node in program.nodes]
        missing = [
            op.outputs[0].name
            for op in ops
            if op.outputs and op.outputs[0] in self._may_feed and op.outputs[0] not in self._known
        ]
        if missing:
            raise self._invalid(f"must be fed before these fetches can run: {', '.join(missing)}")
        # Every value that this part computes, so that no later part computes it again.
        computed = [
            tensor
            for op in ops
            if op not in self._done and not op.op_def.variable
            for tensor in op.outputs
        ]
        fetch = list(dict.fromkeys([*wanted, *computed]))
        rest = [op for op in ops if op not in self._done]
        feeds = list(self._known)
        plan = session._plan(fetch, [op for op in rest if not op.outputs], feeds, self._done)
        given = [self._known[t] for t in feeds]
        if run_plan is not None:
            values = run_plan(plan, given)
        else:
            values = session._run_plan(plan, given, None, None)
        self._known.update(zip(fetch, values, strict=True))
        self._done.update(rest)

    @staticmethod
    def _invalid(message: str) -> errors.InvalidArgumentError:
        return errors.InvalidArgumentError(None, None, f"Partial run: {message}")


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value
