"""Workers and parameter servers as queues: steps on machines that are not there (pure).

A step of a worker is what it is in `runnel`: the worker asks, every server answers, the worker
computes, sends its update to every server, and, if training is synchronous, waits for a token. A
server serves one request at a time. Where tasks share a machine, their work also waits for one of
its cores; where each has a machine of its own, values wait for the server's link. The rules of
synchronous training are those of `SyncReplicasOptimizer`: an update takes the first gradients of
the present step, drops older ones, and gives out a token for each worker, or has go on who waits.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.evaluation.events import Engine, Process, Resource, Tokens, Use


@dataclass(frozen=True, slots=True)
class StepCosts:
    """What one step costs each task, in seconds of its CPU."""

    worker: float
    server: float
    """Of each server, for the step of one worker."""
    first: float = 0.0
    """Of the first server besides: it has the queues."""
    update: float = 0.0
    """Of each server, for applying one synchronous update."""
    chief: float = 0.0
    """Of the first worker, for one synchronous update."""
    latency: float = 0.0
    """Time of a step in which no task works."""
    traffic: float = 0.0
    """Bytes between the worker and each server."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How many tasks there are, and what they share."""

    workers: int
    servers: int = 1
    cores: float | None = None
    """Cores of the one machine that holds all tasks; None: each task has its own machine."""
    bandwidth: float = math.inf
    """Bytes a second of a server's link, where tasks have machines of their own."""
    aggregated: int | None = None
    """Gradients in a synchronous update; None: asynchronous training."""
    elastic: bool = False
    """Whether a table says who goes on after an update, in place of tokens that anyone may take."""


@dataclass(slots=True)
class SimulatedRun:
    """What happened after the warm-up, which is the first fifth of the steps."""

    ends: list[list[float]] = field(default_factory=list)
    """When each worker's steps ended."""
    durations: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)
    """When synchronous updates were done."""
    dropped: int = 0
    offered: int = 0
    """Gradients that workers have sent in all, and those of them that came too late."""
    applied: int = 0
    server_busy: list[float] = field(default_factory=list)
    """How long each server that was simulated has worked."""
    seconds: float = 0.0

    @property
    def steps_per_second(self) -> float:
        """Steps of all workers together."""
        return sum(_rate(ends) for ends in self.ends)

    @property
    def updates_per_second(self) -> float:
        """Synchronous updates."""
        return _rate(self.updates)

    @property
    def median_step(self) -> float:
        """The median time of a worker's step."""
        return statistics.median(self.durations)

    @property
    def median_update(self) -> float:
        """The median time between two synchronous updates."""
        return statistics.median(b - a for a, b in zip(self.updates, self.updates[1:]))


def _rate(ends: list[float]) -> float:
    return (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 else 0.0


def simulate(
    costs: StepCosts, layout: Layout, compute: Callable[[int], float], steps: int = 200
) -> SimulatedRun:
    """Runs until every worker, or every update, has come to so many steps.

    ``compute`` draws the time for which the accelerator of a worker is at work in one step.
    """
    return _Simulation(costs, layout, compute, steps).run()


class _Simulation:
    """One run."""

    def __init__(
        self, costs: StepCosts, layout: Layout, compute: Callable[[int], float], steps: int
    ) -> None:
        self._costs, self._layout, self._compute, self._steps = costs, layout, compute, steps
        self._engine = Engine()
        self._servers = [Resource() for _ in range(_distinct_servers(costs, layout))]
        self._link = Resource()
        self._cores, self._slower = _shared_cores(layout)
        self._tokens = Tokens()
        self._step, self._gathered = 0, 0
        self._made, self._waiting = 0, 0  # updates that were applied; who waits for the next
        self._found = SimulatedRun(ends=[[] for _ in range(layout.workers)])

    def run(self) -> SimulatedRun:
        """Starts all workers at once, and lets them go on until there are enough steps."""
        for index in range(self._layout.workers):
            self._engine.start(self._worker(index))
        self._engine.run_until(self._enough)
        found = self._found
        found.seconds = self._engine.now
        found.server_busy = [server.busy_seconds for server in self._servers]
        # Every worker starts at once, which is not how it goes on.
        begin = self._engine.now / 5
        found.updates = [end for end in found.updates if end >= begin]
        found.ends = [[end for end in ends if end >= begin] for ends in found.ends]
        found.durations = found.durations[len(found.durations) // 5 :]
        return found

    def _enough(self) -> bool:
        if self._layout.aggregated is not None:
            return len(self._found.updates) >= self._steps
        return min(map(len, self._found.ends)) >= self._steps

    def _on_servers(self, seconds: float, first: float, traffic: float) -> list[Use]:
        """Work on all servers at once; the link of a server's own machine may take longer."""
        uses = [
            Use((seconds + (first if number == 0 else 0.0)) * self._slower, (server, *self._cores))
            for number, server in enumerate(self._servers)
        ]
        if math.isfinite(self._layout.bandwidth) and traffic:
            wire = traffic / self._layout.bandwidth
            uses.append(Use(wire, (self._link,)))  # of every server, as they are all asked alike
        return uses

    def _worker(self, index: int) -> Process:
        costs, found = self._costs, self._found
        local_step = 0
        while True:
            begun = self._engine.now
            yield Use(costs.worker / 2 * self._slower, self._cores)
            yield self._on_servers(costs.server / 2, costs.first / 2, costs.traffic / 2)
            yield Use(costs.latency + self._compute(index))
            yield Use(costs.worker / 2 * self._slower, self._cores)
            yield self._on_servers(costs.server / 2, costs.first / 2, costs.traffic / 2)
            found.offered += 1
            if self._layout.aggregated is not None:
                self._offer(local_step)
                if self._layout.elastic and local_step < self._made:
                    local_step = self._made  # it came too late, and goes on where the job is
                else:
                    self._waiting += 1
                    local_step = yield self._tokens
            found.ends[index].append(self._engine.now)
            found.durations.append(self._engine.now - begun)

    def _offer(self, local_step: int) -> None:
        """Adds a gradient to the accumulators, which count it only if it is not too old."""
        if local_step < self._step:
            self._found.dropped += 1
            return
        self._gathered += 1
        if self._gathered == self._layout.aggregated:
            self._gathered = 0
            self._step += 1
            self._found.applied += self._layout.aggregated
            self._engine.start(self._update(self._step))

    def _update(self, step: int) -> Process:
        yield Use(self._costs.chief * self._slower, self._cores)
        yield self._on_servers(self._costs.update, 0.0, 0.0)
        self._found.updates.append(self._engine.now)
        self._made = step
        waiting, self._waiting = self._waiting, 0
        for _ in range(waiting if self._layout.elastic else self._layout.workers):
            self._tokens.put(step)


def _distinct_servers(costs: StepCosts, layout: Layout) -> int:
    """How many servers must be simulated.

    On machines of their own, servers that are asked for the same at the same time answer at the
    same time: one stands for all, and one more for the first if that has more to do.
    """
    if layout.cores is not None:
        return layout.servers
    return min(layout.servers, 2 if costs.first else 1)


def _shared_cores(layout: Layout) -> tuple[tuple[Resource, ...], float]:
    """The cores that all tasks share, and how many times slower they are for a missing fraction."""
    if layout.cores is None:
        return (), 1.0
    places = math.ceil(layout.cores)
    return (Resource(places),), places / layout.cores
