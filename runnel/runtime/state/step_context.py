"""One run of a step: what everything that may wait, or run for long, looks at.

The thread that called ``run`` does all the work of its step and sleeps while the step can only
wait. Whoever makes a result possible, on whichever thread, takes note of it and wakes the sleeper.
So there is no thread for each thing that is waited for.

A step is stopped by its deadline, or by :meth:`StepContext.cancel` from any thread. Whatever may
take long looks at :attr:`StepContext.cancelled` and the deadline: locks, interpreted instructions,
loops in either tier, compiled calls that are waited for, operations that block.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from typing import Any

from runnel.graph import errors
from runnel.graph.operation import Operation
from runnel.ops.send_recv import OUTERMOST
from runnel.passes.program.program import Node
from runnel.pipelines.watching import INPUT_TIMES
from runnel.queues.rendezvous import Rendezvous
from runnel.queues.waiter import Outputs, Waiter
from runnel.runtime.state.in_thread import in_thread
from runnel.runtime.state.resources import Resources

now = time.monotonic

LOOK_SECONDS = 0.02
"""For how long a step waits for another thread before it looks whether it may go on."""

_SIGNAL_SECONDS = 0.5
"""How soon the main thread handles a signal that came just before it fell asleep: Python runs
handlers between instructions only, or when the signal interrupts a call."""

_numbers = itertools.count(1)
_LIMIT = (
    "RunOptions.timeout_in_ms, or ConfigProto.operation_timeout_in_ms for every step of a "
    "session, sets the limit"
)


class NodeWaiter(Waiter):
    """An operation of a running step; ``where`` is what its unit needs to go on with it."""

    __slots__ = ("_context", "node", "where", "made", "error", "iteration")

    def __init__(self, context: StepContext, node: Node, where: Any) -> None:
        self.place = None
        self._context = context
        self.node = node
        self.where = where
        self.made: Callable[[], Outputs] | None = None
        self.error: Exception | None = None
        self.iteration = OUTERMOST
        """The frame and the iteration in which the operation runs."""

    @property
    def resources(self) -> Resources:
        """What steps share, by name."""
        return self._context.steps.resources

    @property
    def rendezvous(self) -> Rendezvous | None:
        """Where the parts of the step meet, if it has any."""
        return self._context.rendezvous

    def subgraph(
        self, fetches: Sequence[Any], feeds: Sequence[Any]
    ) -> Callable[[Sequence[Any]], list[Any]]:
        """A function that computes ``fetches`` from values for ``feeds``, as a step of its own."""
        prepare = self._context.steps.subgraphs
        if prepare is None:
            raise errors.UnimplementedError(
                None,
                None,
                "This step runs where no functions of datasets can be prepared.",
            )
        return prepare(tuple(fetches), tuple(feeds))

    def sender_to(self, device: str) -> Callable[[Any], Any]:
        """A function that gives a value as operations of a device of this task take it."""
        find = self._context.steps.destination
        assert find is not None, "who prepares subgraphs knows devices"
        return find(device, self.node.op).send  # type: ignore[no-any-return]

    def require_time(self) -> None:
        """An error when the step has to stop."""
        self._context.require_time(self.node)
        self._context.require_patience(self.node.op)

    def require_going(self) -> None:
        """An error when the step has to stop even where it computes, rather than waits."""
        self._context.require_time(self.node)

    def complete(self, make: Callable[[], Outputs]) -> None:
        self.made = make
        self._context.arrived(self)

    def fail(self, error: Exception) -> None:
        self.error = error
        self._context.arrived(self)


class StepContext:
    """One run of a step: its number, deadline, observer, and what it waits for.

    ``deadline`` is a time of ``time.monotonic``; ``observer`` a ``StepObserver``, or None.
    """

    # Most steps are short and neither wait nor draw: what they do not need is not made for each.
    cancelled: str | None = None
    """Why the step has to stop, once it has to."""
    interrupted: str | None = None
    """Why the step has to stop where it waits for input, once it has to; it goes on elsewhere."""
    rendezvous: Rendezvous | None = None
    """Where this part of the step meets the others, if there are others."""
    outstanding: dict[NodeWaiter, float] | None = None
    """Operations without a result, and when each began to wait, in that order."""
    drawn: Sequence[tuple[Any, Any, Any]] = ()
    """Cells of random streams that the step has moved on, from where and to where."""
    on_arrival: Callable[[], None] | None = None
    """Called when the step may go on, from any thread, where no thread sleeps for it."""
    inner: StepContext | None = None
    """The step that an operation of this one runs, or ran last."""
    _arrived: deque[NodeWaiter] | None = None
    _wake: Any = None

    def __init__(
        self, steps: RunningSteps, deadline: float | None = None, observer: Any = None
    ) -> None:
        self.id = next(_numbers)
        self.number = next(steps.numbers)
        """The how many-th step of its session it is."""
        self.steps = steps
        self.deadline = deadline
        self.observer = observer
        self.thread = threading.get_ident()
        """The thread that began it."""

    # From any thread ------------------------------------------------------------------------

    def cancel(self, why: str) -> None:
        """Ends the step: it fails with a CancelledError that says ``why``."""
        self.cancelled = why
        self.rouse()
        if self.inner is not None:
            self.inner.cancel(why)

    def interrupt(self, why: str) -> None:
        """Ends the step if it waits for input, now or later: a step that computes is completed."""
        self.interrupted = why
        self.rouse()
        if self.inner is not None:
            self.inner.interrupt(why)

    def arrived(self, waiter: NodeWaiter) -> None:
        """Takes note of a result."""
        assert self._arrived is not None
        self._arrived.append(waiter)
        self.rouse()

    def rouse(self) -> None:
        """Wakes whoever sleeps until something has happened in this step."""
        arrival = self.on_arrival  # looked at once: it is taken away when the step has ended
        if arrival is not None:
            arrival()
        # The order matters: the sleeper shows its lock first and then looks for results; who
        # brings one does it the other way around. So one of them sees the other.
        wake = self._wake
        if wake is not None and wake.locked():
            with contextlib.suppress(RuntimeError):  # someone else has just done it
                wake.release()

    # From the step's thread -----------------------------------------------------------------

    def must_stop(self) -> bool:
        """True when :meth:`require_time` would raise an error."""
        return self.cancelled is not None or (self.deadline is not None and now() > self.deadline)

    def look(self) -> None:
        """An error when the step has to stop inside of an operation, which the caller names."""
        if self.must_stop():
            if self.cancelled is not None:
                raise errors.CancelledError(None, None, f"The step was cancelled: {self.cancelled}")
            raise errors.DeadlineExceededError(None, None, f"The step ran out of time. {_LIMIT}")

    def require_time(self, node: Node) -> None:
        """An error when the step has to stop before ``node`` runs, or goes on."""
        if self.must_stop():
            raise self._stopped(node.op)

    def require_patience(self, op: Operation | None) -> None:
        """An error when the step should not wait for what ``op`` waits for."""
        if self.interrupted is not None:
            what = "The step" if op is None else repr(op.name)
            message = f"{what} stopped waiting: {self.interrupted}"
            raise errors.CancelledError(None, op, message)

    def _stopped(self, op: Operation) -> errors.OpError:
        if self.cancelled is not None:
            message = f"The step was cancelled before {op.name!r}: {self.cancelled}"
            return errors.CancelledError(None, op, message)
        message = f"The step ran out of time before {op.name!r}. {_LIMIT}"
        return errors.DeadlineExceededError(None, op, message)

    def await_ready(self, value: Any, op: Operation) -> None:
        """Waits for a value that a device may still be computing, for ``op``.

        An error when the step has to stop before that. A value that another step has taken over
        meanwhile counts as there.
        """
        with contextlib.suppress(RuntimeError):
            if not hasattr(value, "is_ready") or value.is_ready():
                return
            waiting = in_thread(value.block_until_ready)
            while not waiting.done():
                if self.must_stop():
                    raise self._stopped(op)
                wait([waiting], self.patience(LOOK_SECONDS))

    def patience(self, most: float) -> float:
        """The seconds to wait before the next look: ``most``, or what the deadline leaves."""
        if self.deadline is None:
            return most
        return min(most, max(self.deadline - now(), 0))

    def waiter(self, node: Node, where: Any) -> NodeWaiter:
        """What a blocking operation is given to wait with."""
        if self._arrived is None:
            self._arrived = deque()
        return NodeWaiter(self, node, where)

    def begin_to_wait(self, waiter: NodeWaiter) -> None:
        """Notes that an operation has no result yet."""
        if self.outstanding is None:
            self.outstanding = {}
        self.outstanding[waiter] = now()

    def has_arrived(self) -> bool:
        """True when an operation that waited has a result; an error when the step has to stop."""
        if self._arrived:
            return True
        if self.cancelled is not None:
            raise self._cancelled()
        return False

    def next(self) -> NodeWaiter:
        """The next operation that has a result; there must be one."""
        assert self._arrived
        if self.cancelled is not None and self._arrived[0].error is not None:
            raise self._cancelled()  # closing a session also takes away what its steps wait for
        waiter = self._arrived.popleft()
        if self.outstanding is not None:
            self.outstanding.pop(waiter, None)
        return waiter

    def sleep(self) -> None:
        """Sleeps until something has arrived, or the step has to stop."""
        start = time.perf_counter()
        try:
            self.sleep_until(self._has_results)
        finally:
            if self._arrived:
                self._count_input(self._arrived[0].node, time.perf_counter() - start)

    @staticmethod
    def _count_input(node: Node, seconds: float) -> None:
        """Counts a sleep that ``node`` has ended as a wait for input, if it takes from a queue."""
        if node.op.type.startswith("QueueDequeue"):
            INPUT_TIMES.add_wait(seconds, f"queue {node.op.inputs[0].op.name}")

    def _has_results(self) -> bool:
        return bool(self._arrived)

    def sleep_until(self, happened: Callable[[], bool], what: str | None = None) -> None:
        """Sleeps until ``happened()``, which is asked whenever the context is roused.

        An error says that the step has to stop before that; ``what`` it waits for, if that is not
        an operation.
        """
        wake = self._lock_to_sleep_on()
        in_main_thread = threading.current_thread() is threading.main_thread()
        while not happened():
            if self.cancelled is not None:
                raise self._cancelled(what)
            if self.interrupted is not None and what is None and not self._awaits_a_part():
                self.require_patience(self._first())
            if self.deadline is None:
                wake.acquire(timeout=_SIGNAL_SECONDS if in_main_thread else -1)
            elif not wake.acquire(timeout=max(self.deadline - now(), 0)):
                if not happened():
                    raise self._out_of_time(what)

    def _lock_to_sleep_on(self) -> Any:
        """A lock that is held, until somebody rouses the step."""
        if self._wake is None:
            wake = threading.Lock()
            wake.acquire()
            self._wake = wake
        return self._wake

    def stopped(self, what: str) -> errors.OpError | None:
        """The error of a step that has to stop while ``what`` waits; None when it need not."""
        if self.cancelled is not None:
            return self._cancelled(what)
        return self._out_of_time(what) if self.must_stop() else None

    def _out_of_time(self, what: str | None) -> errors.DeadlineExceededError:
        message = f"The step ran out of time while {what or self._what()} was waiting. {_LIMIT}"
        return errors.DeadlineExceededError(None, self._first(), message)

    def linger(self, happened: Callable[[], bool], seconds: float) -> None:
        """Waits for ``happened()``, but no longer than that, in a step that has failed."""
        limit = now() + seconds
        wake = self._lock_to_sleep_on()
        while not happened() and (left := limit - now()) > 0:
            wake.acquire(timeout=left)

    def _cancelled(self, what: str | None = None) -> errors.CancelledError:
        message = f"{what or self._what()} was cancelled: {self.cancelled}"
        return errors.CancelledError(None, self._first(), message)

    def _awaits_a_part(self) -> bool:
        """True where another part of the step, or another task, computes what it waits for."""
        waiting = [waiter.node.op.type for waiter in self.outstanding or ()]
        return any(kind.startswith(("_Recv", "Collective")) for kind in waiting)

    def _first(self) -> Operation | None:
        return next(iter(self.outstanding)).node.op if self.outstanding else None

    def _what(self) -> str:
        first = self._first()
        if first is None:
            return "The step"
        count = len(self.outstanding or ())
        others = f" (and {count - 1} more)" if count > 1 else ""
        return f"{first.name!r}{others}"

    def withdraw(self) -> None:
        """Withdraws the operations that still wait; the step has failed."""
        for waiter in self.outstanding or ():
            if waiter.place is not None:
                waiter.place.cancel(waiter)
        self.outstanding = None


class RunningSteps:
    """The steps of a session that run, so that they can be cancelled."""

    __slots__ = (
        "resources",
        "numbers",
        "subgraphs",
        "destination",
        "_running",
        "_closed",
        "_impatient",
    )

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        """What steps share beside variables."""
        self.subgraphs: Callable[[tuple[Any, ...], tuple[Any, ...]], Any] | None = None
        """Prepares parts of the graph that operations run: functions of datasets."""
        self.destination: Callable[[str, Operation], Any] | None = None
        """Finds the device to which an operation sends values, by its name."""
        self.numbers = itertools.count(1)
        """For the steps, in the order in which they begin."""
        # Changed by single operations of a dictionary only, which need no lock.
        self._running: dict[int, StepContext] = {}
        self._closed: str | None = None
        self._impatient: dict[int, str] = {}
        """Threads whose steps do not wait for input, and why."""

    def begin(self, deadline: float | None = None, observer: Any = None) -> StepContext:
        """A step that runs from now on; :meth:`end` must follow."""
        context = StepContext(self, deadline, observer)
        self.adopt(context)
        return context

    def adopt(self, context: StepContext) -> None:
        """Counts a step among these that others began; :meth:`end` must follow here, too."""
        self._running[context.id] = context
        if self._impatient and context.thread in self._impatient:
            context.interrupt(self._impatient[context.thread])
        if self._closed is not None:  # after the step can be seen: closing misses none
            context.cancel(self._closed)

    def begin_inside(self) -> StepContext:
        """A step that an operation of another one runs: it has to stop when that one has to.

        The other one is what this thread began last. A thread that works ahead of steps has none.
        """
        thread = threading.get_ident()
        outer = next((c for c in reversed(self.running()) if c.thread == thread), None)
        context = self.begin(None if outer is None else outer.deadline)
        if outer is not None:
            outer.inner = context
            if outer.cancelled is not None:  # after the step can be seen: cancelling misses none
                context.cancel(outer.cancelled)
        return context

    def end(self, context: StepContext) -> None:
        """Notes that a step has ended."""
        self._running.pop(context.id, None)

    def running(self) -> list[StepContext]:
        """The steps that run now."""
        return list(self._running.values())

    def interrupt(self, why: str, thread: int) -> None:
        """Has the steps of ``thread`` end where they wait for input, until :meth:`calm`."""
        self._impatient[thread] = why  # first: a step that begins meanwhile sees it
        for context in self.begun_by(thread):
            context.interrupt(why)

    def calm(self, thread: int) -> None:
        """Lets steps that ``thread`` begins from now on wait."""
        self._impatient.pop(thread, None)

    def is_impatient(self, thread: int) -> bool:
        """True from :meth:`interrupt` to :meth:`calm`."""
        return thread in self._impatient

    def begun_by(self, thread: int) -> list[StepContext]:
        """The steps that run now and that ``thread`` began."""
        return [context for context in self.running() if context.thread == thread]

    def cancel(self, why: str, thread: int | None = None) -> None:
        """Cancels the steps that run now, or only those that ``thread`` began."""
        for context in self.running():
            if thread in (None, context.thread):
                context.cancel(why)

    def close(self, why: str) -> None:
        """Cancels every step that runs or is about to."""
        self._closed = why
        self.cancel(why)
