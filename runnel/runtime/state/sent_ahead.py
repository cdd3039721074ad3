"""Steps that were sent to a device and have not yet been seen to succeed.

Nobody waits for a step that fetches nothing, even if something in it may fail. Its outcome stays on
the device, as one flag, and the next step that the same thread sends takes that flag as an operand.
A step whose predecessor has failed changes nothing, so when a failure is noticed, all state is as
the failed step found it. (A step of another thread does not come after it: that one goes on.)
Whatever the thread does next with that state raises the error; after the thread's end, any other
thread does.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runnel.graph.errors import OpError
from runnel.passes.program.program import Node
from runnel.runtime.state.step_context import StepContext, now

if TYPE_CHECKING:
    from runnel.runtime.state.cell import Undo

logger = logging.getLogger("runnel")

_LOOK_SECONDS = 0.05
"""How long after one look at what has ended the next is taken. To read a flag of an accelerator
takes up to a millisecond, twenty times as long as to send a small step."""
_MOST_BYTES = 1 << 28
"""What the inputs of steps that were sent may take; with more, only one step is ahead."""


class SentStep:
    """One step that was sent, with all that it takes to say why it failed."""

    __slots__ = ("held", "inputs", "nbytes", "context", "node", "undo", "_explain", "_device_error")

    def __init__(
        self,
        inputs: list[Any],
        context: StepContext,
        node: Node,
        explain: Callable[[SentStep], None],
        device_error: Callable[[Exception], OpError | None],
    ) -> None:
        """``explain`` raises the error of a step that failed, from the state before it.

        ``device_error`` makes one of what JAX raises, where a device is to blame.
        """
        self.held: Any = None
        """Its outcome, an array: whether it and all before it in its chain succeeded. It is stored
        as a cell's value is, together with those; None before that."""
        self.inputs = inputs
        """What it was given; the caller's own arrays only as long as the caller waits."""
        self.nbytes: int = sum(getattr(value, "nbytes", 0) for value in inputs)
        """The memory that is kept for the sake of an explanation."""
        self.context = context
        self.node = node
        """What an error names where nothing else is known."""
        self.undo: Sequence[Undo] = ()
        """What has to be taken back when it has failed."""
        self._explain = explain
        self._device_error = device_error

    def own_inputs(self) -> None:
        """Copies the caller's arrays, which the caller may change when ``run`` returns."""
        for place, value in enumerate(self.inputs):
            if isinstance(value, np.ndarray):
                self.inputs[place] = np.array(value)

    def holds(self) -> bool:
        """Waits for the outcome; an error when the device failed."""
        try:
            return bool(np.asarray(self.held))
        except RuntimeError as error:
            failure = self._device_error(error)
            if failure is None:
                raise
            raise failure from error

    def explain(self) -> None:
        """Raises the error of the step, which has failed."""
        self._explain(self)


class Sender:
    """The steps that one thread has sent and that nobody has seen to succeed, oldest first."""

    def __init__(self, take_back: Callable[[Sequence[Undo]], None]) -> None:
        self._take_back = take_back
        self._steps: deque[SentStep] = deque()
        self._bytes = 0
        self._next_look = 0.0
        # Held while steps are added or taken away: whoever closes a session looks at the steps
        # of every thread.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def outcome(self) -> Any:
        """The flag that the next step takes; None where none of those before it can have failed."""
        for step in reversed(self._steps):
            if step.held is not None:
                return step.held
        return None

    def add(self, step: SentStep) -> None:
        """Notes a step that is about to be sent; :meth:`withdraw` must follow if it is not."""
        with self._lock:
            self._steps.append(step)
            self._bytes += step.nbytes

    def withdraw(self, step: SentStep) -> None:
        """Forgets a step that has not been sent after all."""
        with self._lock:
            if step.held is None and step in self._steps:
                self._steps.remove(step)
                self._bytes -= step.nbytes

    def look(self) -> None:
        """Raises the error of a step that has failed, if it is time to look; waits for nothing."""
        if now() < self._next_look:
            return
        ended = [step for step in self._sent() if step.held.is_ready()]
        if ended:
            self._confirm(ended[-1])
        self._next_look = now() + _LOOK_SECONDS

    def keep(self, most: int) -> None:
        """Waits, when more than ``most`` steps are left, until it is half of them.

        It may also raise the error of one that failed. Steps with large inputs are kept fewer.
        """
        if self._bytes > _MOST_BYTES:
            most = min(most, 1)
        if len(self._steps) > most:
            steps = self._sent()
            self._confirm(steps[max(len(steps) - 1 - (most + 1) // 2, 0)])

    def settle(self, context: StepContext | None = None) -> None:
        """Waits for every step, as long as ``context`` may; raises the error of one that failed."""
        steps = self._sent()
        if steps:
            if context is not None and context.deadline is not None:
                context.await_ready(steps[-1].held, steps[-1].node.op)
            self._confirm(steps[-1])

    def _sent(self) -> list[SentStep]:
        with self._lock:
            return [step for step in self._steps if step.held is not None]

    def _confirm(self, last: SentStep) -> None:
        """Waits for ``last`` and all before it.

        An interrupt leaves everything to be done once more.
        """
        with self._lock:
            try:
                if last.holds():
                    while last in self._steps:
                        self._steps.popleft()
                    self._bytes = sum(step.nbytes for step in self._steps)
                    return
                self._raise_failure()
            except Exception:
                self._steps.clear()
                self._bytes = 0
                raise

    def _raise_failure(self) -> None:
        steps = list(self._steps)
        first = next(i for i, step in enumerate(steps) if step.held is None or not step.holds())
        self._take_back([undo for step in steps[first:] for undo in step.undo])
        try:
            steps[first].explain()
        except OpError as error:
            error.remark(_remark(steps[first], len(steps) - first - 1))
            raise


def raise_first(failures: Sequence[Exception]) -> None:
    """Raises the first of the errors that steps had, if there are any, and logs the others."""
    for failure in failures[1:]:
        logger.error("A step that was sent ahead failed: %s", failure)
    if failures:
        raise failures[0]


def _remark(failed: SentStep, later: int) -> str:
    this = f"This was step {failed.context.number} of the session, which was sent ahead."
    if not later:
        return f"({this} It has changed nothing.)"
    others = "the step" if later == 1 else f"the {later} steps"
    return (
        f"({this} Neither it nor {others} sent after it has changed anything: run what you still "
        "want of those again. RUNNEL_STEPS_AHEAD=0 has every step waited for.)"
    )
