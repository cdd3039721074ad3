"""From what one and two workers took to the costs of a step, and from these to larger sizes (pure).

Costs are seconds of CPU, which a busy machine changes little; the time that other programs took
from the machine while a size was measured is taken from the simulated machine, too.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.evaluation.fleet import Observation
from benchmarks.evaluation.simulation import Layout, SimulatedRun, StepCosts, simulate

LEAST_SHARE = 0.5
"""However busy others are, the system gives our tasks so much of the machine when they ask."""
LINK = 1.25e9
"""Bytes a second of a server's link on a cluster: 10 Gbit/s, assumed."""


def asynchronous_costs(seen: Sequence[Observation], cores: int, traffic: float) -> StepCosts:
    """The costs of a step without waiting for others; the first observation is of one worker."""
    each = [_each(one.server_cpu) / one.rate for one in seen]
    costs = StepCosts(
        worker=statistics.mean(sum(one.worker_cpu) / one.rate for one in seen),
        server=statistics.mean(each),
        first=max(0.0, statistics.mean(one.server_cpu[0] / one.rate for one in seen) - each[0]),
        traffic=traffic,
    )
    return replace(costs, latency=_latency(costs, seen, cores, synchronous=False))


def synchronous_costs(one: Observation, two: Observation, cores: int, traffic: float) -> StepCosts:
    """The costs of a step and of an update, from a worker alone and two together."""
    rounds = two.rate / 2
    own = two.worker_cpu[1] / rounds
    alone, both = _each(one.server_cpu) / one.rate, _each(two.server_cpu) / rounds
    # Two workers cost a server two steps and one update, a single one a step and an update.
    server = min(max(both - alone, both / 4), both / 2)
    costs = StepCosts(
        worker=own,
        server=server,
        first=max(0.0, two.server_cpu[0] / rounds - both) / 2,
        update=both - 2 * server,
        chief=max(0.0, two.worker_cpu[0] / rounds - own),
        traffic=traffic,
    )
    return replace(costs, latency=_latency(costs, [one, two], cores, synchronous=True))


def _each(cpu: list[float]) -> float:
    """What a server takes that has no queues: the first has them, where there are others."""
    return statistics.mean(cpu[1:] or cpu)


def _latency(costs: StepCosts, seen: Sequence[Observation], cores: int, synchronous: bool) -> float:
    """What of a step nobody's work explains: the least, as other programs can only add to it."""
    found = []
    for one in seen:
        aggregated = one.workers if synchronous else None
        run = predicted(costs, one, cores, aggregated, one.waits)
        found.append(one.step_time - one.workers / run.steps_per_second)
    return max(0.0, min(found))


def on_machine(
    observed: Observation, cores: int, aggregated: int | None, elastic: bool = False
) -> Layout:
    """The layout of an observation: all tasks on what of the machine was theirs."""
    left = max(LEAST_SHARE * cores, cores - observed.others_cpu)
    share = min(left, cores)
    return Layout(observed.workers, observed.servers, share, aggregated=aggregated, elastic=elastic)


def accelerator(waits: Sequence[float], seed: int = 0) -> Callable[[int], float]:
    """Draws a worker's time from those that were measured; none where there were none."""
    source = random.Random(seed)
    return lambda worker: source.choice(waits) if waits else 0.0


def predicted(
    costs: StepCosts,
    observed: Observation,
    cores: int,
    aggregated: int | None,
    waits: Sequence[float],
    elastic: bool = False,
) -> SimulatedRun:
    """The simulation of what was observed."""
    layout = on_machine(observed, cores, aggregated, elastic)
    return simulate(costs, layout, accelerator(waits), steps=120)


def on_cluster(
    costs: StepCosts,
    workers: int,
    servers: int,
    aggregated: int | None,
    waits: Sequence[float],
    steps: int = 60,
    elastic: bool = False,
) -> SimulatedRun:
    """The simulation of tasks that have a machine each."""
    layout = Layout(workers, servers, None, LINK, aggregated, elastic)
    return simulate(costs, layout, accelerator(waits), steps)


def spread_over(costs: StepCosts, measured: int, servers: int, fixed: StepCosts) -> StepCosts:
    """The costs when values lie on another number of servers.

    What a server does for a step has a part for each byte, which is divided among the servers, and
    a part for each message (``fixed``: the costs of a step with hardly any bytes), which is not.
    """
    share = measured / servers

    def divided(whole: float, message: float) -> float:
        message = min(whole, message)
        return message + (whole - message) * share

    return replace(
        costs,
        server=divided(costs.server, fixed.server),
        update=divided(costs.update, fixed.update),
        traffic=costs.traffic * share,
    )
