"""A step over several tasks: its parts, and running them together.

The caller gets the first *cause* of a failure, not the cancellations that follow from it. A step
ends when all its parts have ended, so nothing of it goes on behind the caller's back, unless a task
cannot be reached.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from runnel.distributed import wire
from runnel.distributed.messages import PartEnded, RunPart
from runnel.distributed.peers import ping
from runnel.distributed.protocol.worker_pb2 import Envelope
from runnel.distributed.step_rendezvous import task_of
from runnel.graph import errors
from runnel.graph.device_set import LogicalDevice
from runnel.graph.operation import Operation, Tensor
from runnel.passes.program.program import Node
from runnel.passes.program.prune import prune
from runnel.runtime.schedule.plan import own_values
from runnel.runtime.schedule.task_transfers import route_key
from runnel.runtime.state.step_context import StepContext

if TYPE_CHECKING:
    from runnel.distributed.master import MasterSession
    from runnel.runtime.report.explain_step import StepExplanation

_GRACE_SECONDS = 2.0
"""For how long a failed step waits for its other parts to stop."""


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part that a task has been given: what it is fed, and the numbers of what it gives."""

    number: int
    task: str
    feeds: tuple[Tensor, ...]
    gives: tuple[int, ...]


def _by_this_clock(stats: bytes, ahead: int) -> bytes:
    """What another task has observed, whose clock is ``ahead`` by so many nanoseconds."""
    from tensorboard.compat.proto.step_stats_pb2 import StepStats

    found = StepStats.FromString(stats)
    for device in found.dev_stats:
        for node in device.node_stats:
            node.all_start_micros -= ahead // 1000
    return bytes(found.SerializeToString())


def lost_error(
    task: str, error: errors.OpError, device_of: Mapping[Operation, LogicalDevice]
) -> errors.OpError:
    """``error`` with the task that is lost, and what a step needs it for: the last op there."""
    there = [op for op, device in device_of.items() if task_of(device.name) == task]
    found = type(error)(None, there[-1] if there else None, error.message)
    found.task = task  # type: ignore[attr-defined]
    return found


class ClusterPlan:
    """A step of one signature, prepared on all its tasks."""

    def __init__(
        self,
        session: MasterSession,
        parts: Sequence[StepPart],
        feeds: Sequence[Tensor],
        feed_numbers: Sequence[int],
        fetch_numbers: Sequence[int],
        fetches: Sequence[Tensor],
        device_of: Mapping[Node, LogicalDevice],
        build: tuple[Any, ...],
    ) -> None:
        """``build`` is what the step was pruned to."""
        self.session = session
        self._build = build
        own = session.server.task
        places = {tensor: i for i, tensor in enumerate(feeds)}
        self.remote = [(p, [places[t] for t in p.feeds]) for p in parts if p.task != own]
        mine = [(p, [places[t] for t in p.feeds]) for p in parts if p.task == own]
        self.mine = mine[0] if mine else None
        self._feed_numbers = feed_numbers
        self._fetch_numbers = fetch_numbers
        self.fetches = fetches
        self._device_of = {node.op: device for node, device in device_of.items()}

    def run(self, feeds: list[Any], context: StepContext) -> list[Any]:
        """The fetched values."""
        step = ClusterStep(self, context)
        values = step.run(feeds)
        for number, value in zip(self._feed_numbers, feeds, strict=True):
            values.setdefault(number, value)
        return own_values([values[number] for number in self._fetch_numbers])

    def device_of(self, op: Operation) -> LogicalDevice:
        """Where ``op`` runs."""
        return self._device_of.get(op, self.session.devices.default)

    def device_error(self, error: Exception) -> errors.OpError:
        """The error for a device of this task that failed while nobody was waiting for it."""
        return errors.InternalError(None, None, f"A device failed: {error}")

    def add_partition_graphs(self, run_metadata: Any) -> None:
        """Adds a graph for each device of any task that has something to run."""
        from runnel.passes.placement.part_graph import add_device_graphs

        program = prune(*self._build)
        device_of = {node: self.device_of(node.op) for node in program.nodes}
        add_device_graphs(program, device_of, self.session.devices.devices.host, run_metadata)

    def explain(self, hlo: bool | str) -> StepExplanation:
        """The part of this task as it runs, and which operations the parts of other tasks have."""
        from runnel.runtime.report.explain_step import StepExplanation, explain_step, part_elsewhere

        session = self.session
        hosted = session.server.host.sessions.get(session.number)
        own = StepExplanation(0, ())
        if self.mine is not None and hosted is not None and self.mine[0].number in hosted.parts:
            own = explain_step(hosted.parts[self.mine[0].number].plan(), hlo)
        elsewhere: dict[str, list[str]] = {part.task: [] for part, _ in self.remote}
        for op, device in self._device_of.items():
            if task_of(device.name) in elsewhere:
                elsewhere[task_of(device.name)].append(op.name)
        parts = [part_elsewhere(task, names) for task, names in elsewhere.items()]
        return replace(own, units=(*own.units, *parts))

    def lost(self, task: str, error: errors.OpError) -> errors.OpError:
        """The error of a step that needs a task which cannot be reached."""
        return lost_error(task, error, self._device_of)

    def find(self, name: str) -> Operation | None:
        """The user's operation of a name."""
        graph = self.fetches[0].graph if self.fetches else None
        return None if graph is None else graph._by_name.get(name)


class ClusterStep:
    """One run of a step over its tasks."""

    def __init__(self, plan: ClusterPlan, context: StepContext) -> None:
        self._plan = plan
        self._session = plan.session
        self.context = context
        # Guards what follows, which readers' threads change.
        self._lock = threading.Lock()
        self._values: dict[int, Any] = {}
        self._unended = {part.number: part for part, _ in plan.remote}
        self._asked = 0
        """How many of these tasks have been asked to run their parts."""
        self._cause: errors.OpError | None = None
        self._consequence: errors.OpError | None = None
        self._number = 0
        self.begun = time.time()
        self._here: Any = None
        self.stats: list[tuple[str, bytes]] = []
        self._arrivals: dict[str, int] = {}

    def run(self, feeds: list[Any]) -> dict[int, Any]:
        """What the parts give, by number."""
        session, context = self._session, self.context
        self._number, oldest = session.begin(self)
        try:
            return self._run(feeds, oldest)
        except BaseException as error:
            self._stop(error)
            cause = self._cause or self._consequence
            if cause is not None and isinstance(error, errors.OpError) and error is not cause:
                if not isinstance(error, errors.DeadlineExceededError):
                    raise cause from None
            raise
        finally:
            if self._here is not None:
                session.server.host.end_here(self._here)
            session.end(self._number)
            context.rendezvous = None
            # The error's frames have the step's values: they must not have the error as well.
            self._cause = self._consequence = self._here = cause = None

    def _run(self, feeds: list[Any], oldest: int) -> dict[int, Any]:
        session, context, plan = self._session, self.context, self._plan
        trace = context.observer is not None
        mine = plan.mine
        if mine is not None:
            part, places = mine
            self._here = session.server.host.begin_here(
                RunPart(session.number, part.number, self._number, oldest)
            )
            if self._here is None:
                raise errors.CancelledError(None, None, "The step was cancelled: it is over")
        for remote, remote_places in plan.remote:
            self._asked += 1
            message = RunPart(session.number, remote.number, self._number, oldest, trace)
            if trace:  # answered before the part ends: what comes in order is read in order
                ping(session.channels[remote.task])
            given = [feeds[i] for i in remote_places]
            if trace and given:
                route = route_key(session.server.host.task, remote.task, "feeds")
                context.observer.departed(route, time.perf_counter_ns(), given)
            try:
                waits = f"what it feeds to {remote.task}, which is slow to read,"
                channel = session.channel(remote.task)
                channel.send(message, given, given_up=partial(context.stopped, waits))
            except (errors.UnavailableError, errors.AbortedError) as error:
                raise plan.lost(remote.task, error) from error
        if mine is not None:
            found = session.server.host.run_here(self._here, [feeds[i] for i in places], context)
            self._values.update(zip(part.gives, found, strict=True))
        if plan.remote:
            context.sleep_until(self._is_over, "The step's part on another task")
        if self._cause is not None or self._consequence is not None:
            raise self._cause or self._consequence  # type: ignore[misc]
        if trace:
            self._add_stats()
        return self._values

    def _is_over(self) -> bool:
        return not self._unended or self._cause is not None

    def _add_stats(self) -> None:
        if self._here is not None:
            self.context.observer.came(self._here.rendezvous.arrivals)
        self.context.observer.came(self._arrivals)
        for task, stats in self.stats:
            ahead = self._session.channels[task].clock.nanoseconds
            self.context.observer.add_stats(_by_this_clock(stats, ahead))

    def awaited(self) -> list[str]:
        """The tasks whose parts have not ended."""
        return [part.task for part in list(self._unended.values())]

    # From readers' threads ------------------------------------------------------------------

    def part_ended(self, message: PartEnded, values: list[Any]) -> None:
        """A part on another task has ended; :meth:`rouse` follows."""
        with self._lock:
            part = self._unended.get(message.part)
            if part is None:
                return
            if message.failure is not None:
                error = wire.error_of(message.failure, self._plan.find)
                if error.op is None and isinstance(error, errors.UnavailableError):
                    error = self._plan.lost(message.failure.task, error)  # as that task has seen it
                self._note(error, message.failure.follows)
            else:
                self._values.update(zip(part.gives, values, strict=True))
                if message.stats:
                    route = route_key(part.task, self._session.server.host.task, "fetches")
                    self._arrivals[route] = time.perf_counter_ns()
                    self.stats.append((part.task, message.stats))
            # Last: the caller's thread looks at this without the lock, and goes on.
            del self._unended[message.part]

    def task_lost(self, task: str, error: errors.OpError) -> None:
        """A task cannot be reached any more."""
        with self._lock:
            lost = [n for n, part in self._unended.items() if part.task == task]
            if not lost:
                return
            self._note(self._plan.lost(task, error), False)
            for number in lost:  # last, as above
                del self._unended[number]
        self.rouse()

    def _note(self, error: errors.OpError, follows: bool) -> None:
        if follows:
            self._consequence = self._consequence or error
        elif self._cause is None:
            self._cause = error

    def rouse(self) -> None:
        """Tells the caller's thread; one that waits for a value that will not come fails."""
        if self._unended and self._cause is None:
            return
        cause = self._cause or (self._consequence if not self._unended else None)
        here = self._here
        if cause is not None and here is not None:
            here.rendezvous.abort(cause)
        self.context.rouse()

    # After a failure ------------------------------------------------------------------------

    def _stop(self, error: BaseException) -> None:
        """Stops the other parts, and waits a little for them."""
        session = self._session
        failure = wire.failure_of(error, session.server.task)
        if not isinstance(error, Exception):
            failure.code, failure.message = errors.CANCELLED, "the step was interrupted"
        with self._lock:
            if self._cause is None and isinstance(error, errors.OpError):
                here = None if self._here is None else self._here.rendezvous.error
                if error is not here and self._consequence is None:
                    self._cause = error
            for part, _ in self._plan.remote[self._asked :]:  # nobody will tell their end
                self._unended.pop(part.number, None)
            unended = list(self._unended.values())
        for part in unended:
            envelope = Envelope()
            envelope.abort.session, envelope.abort.step = session.number, self._number
            envelope.abort.failure.CopyFrom(failure)
            try:
                session.channels[part.task].send(envelope, wait=False)
            except errors.OpError:  # it is lost
                with self._lock:
                    self._unended.pop(part.number, None)
        if isinstance(error, Exception) and session.closed is None:
            self.context.linger(lambda: not self._unended, _GRACE_SECONDS)
