"""What a running loop looks at to know whether it may go on."""

from __future__ import annotations

import time
from typing import Any

from runnel.graph import errors
from runnel.passes.program.program import Node
from runnel.runtime.interpret.interpreter import require_time
from runnel.runtime.state.state import StateStore


class StepWatch:
    """One run of a step: its deadline (``time.monotonic``), its session, who observes it."""

    __slots__ = ("store", "deadline", "observer")

    def __init__(self, store: StateStore, deadline: float | None, observer: Any) -> None:
        self.store = store
        self.deadline = deadline
        self.observer = observer

    def must_stop(self) -> bool:
        """True when :meth:`require_time` would raise an error."""
        return self.store.closed or (self.deadline is not None and now() > self.deadline)

    def require_time(self, node: Node) -> None:
        """An error when the step has to stop before the next iteration of ``node``."""
        if self.store.closed:
            raise errors.CancelledError(
                None, node.op, f"The session was closed before {node.op.name!r} had ended"
            )
        if self.deadline is not None:
            require_time(self.deadline, node)


now = time.monotonic
