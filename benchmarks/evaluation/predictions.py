"""What the simulation says of the sizes that were measured, and of those that were not (pure)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from benchmarks.evaluation.calibration import (
    asynchronous_costs,
    on_cluster,
    predicted,
    spread_over,
    synchronous_costs,
)
from benchmarks.evaluation.fleet import Observation
from benchmarks.evaluation.simulation import StepCosts
from benchmarks.trial import SUBJECT
from benchmarks.workloads.evaluated_programs import (
    LENGTH,
    MEGA,
    ROWS,
    SAMPLED,
    SENTENCES,
    UNITS,
    WIDTH,
)

SIZES = (1, 2, 5, 10, 25, 50, 100, 200)
CLUSTER_SERVERS = 16
"""Parameter servers of the simulated cluster, as in the paper."""
BACKUPS = (0, 1, 2, 3, 4, 5, 6, 8, 10)
LANGUAGE_WORKERS, LANGUAGE_SERVERS = (4, 32, 200), (1, 2, 4, 8, 16, 32)
PERCEPTRON_BYTES = 2 * 4 * (784 * 256 + 256 + 256 * 10 + 10)
"""The parameters, read and updated."""
WORDS_A_STEP = SENTENCES * LENGTH
Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A size that was measured, beside its simulation."""

    what: str
    size: str
    measured: float
    simulated: float
    calibrating: bool
    """The simulation was made from this size's costs."""

    @property
    def error(self) -> float:
        """How much too long the simulation says that a step takes."""
        return self.simulated / self.measured - 1


def observation(stored: dict[str, Any]) -> Observation:
    """An observation as it was kept."""
    names = {field.name for field in fields(Observation)}
    return Observation(**{name: value for name, value in stored.items() if name in names})


class Evaluation:
    """The kept results, and what follows from them."""

    def __init__(self, content: dict[str, Any], sizes: Sequence[int] = SIZES) -> None:
        self.content = content
        self.machine: dict[str, Any] = content["machine"]
        self.parts: dict[str, Any] = content["parts"]
        self.sizes = sizes
        self.cores: int = self.machine["cores"]

    # Figure 6 ---------------------------------------------------------------------------------

    @cached_property
    def null_costs(self) -> dict[str, StepCosts]:
        """The costs of each kind of null step."""
        found = {}
        for curve in self.parts["figure6"]["curves"]:
            seen = [observation(stored) for stored in curve["observed"][SUBJECT]]
            found[null_name(curve)] = synchronous_costs(
                seen[0], seen[1], self.cores, self._null_traffic(curve)
            )
        return found

    def _null_traffic(self, curve: dict[str, Any]) -> float:
        if curve["kind"] == "dense":
            return float(curve["megabytes"] * MEGA / self.parts["figure6"]["servers"])
        return float(ROWS * WIDTH * 4) if curve["kind"] == "sparse" else 4.0

    def null_predictions(self) -> list[Prediction]:
        """Figure 6 as measured and as simulated, in seconds of a step."""
        found = []
        for curve in self.parts["figure6"]["curves"]:
            name = null_name(curve)
            for seen in map(observation, curve["observed"][SUBJECT]):
                run = predicted(self.null_costs[name], seen, self.cores, seen.workers, ())
                found.append(
                    Prediction(
                        f"null step, {name}",
                        _workers(seen.workers),
                        seen.step_time,
                        1 / run.updates_per_second,
                        seen.workers <= 2,
                    )
                )
        return found

    @cached_property
    def null_cluster(self) -> dict[str, Points]:
        """Figure 6 on a simulated cluster: seconds of a step against workers."""
        scalar = self.null_costs["scalar"]
        found: dict[str, Points] = {}
        for name, costs in self.null_costs.items():
            if name.startswith("dense"):
                servers = self.parts["figure6"]["servers"]
                costs = spread_over(costs, servers, CLUSTER_SERVERS, scalar)
            runs = (
                on_cluster(costs, count, CLUSTER_SERVERS, count, (), steps=12)
                for count in self.sizes
            )
            found[name] = [
                (count, 1 / run.updates_per_second)
                for count, run in zip(self.sizes, runs, strict=True)
            ]
        return found

    def server_times(self) -> tuple[float, float]:
        """Seconds of a server's CPU for the step of a worker, and for a byte of it."""
        step = self.null_costs["scalar"].server
        dense = [costs for name, costs in self.null_costs.items() if name.startswith("dense")]
        largest = max(dense, key=lambda costs: costs.traffic)
        return step, max(0.0, largest.server - step) / largest.traffic

    # Figure 7 ---------------------------------------------------------------------------------

    @cached_property
    def training_costs(self) -> dict[str, tuple[StepCosts, list[float]]]:
        """The costs of each curve, and the accelerators' times of its first two sizes."""
        curves = self.parts["figure7"]["curves"]
        return {training_name(curve): self._training_costs(curve) for curve in curves}

    def _training_costs(self, curve: dict[str, Any]) -> tuple[StepCosts, list[float]]:
        part = self.parts["figure7"]
        seen = [observation(stored) for stored in curve["observed"][SUBJECT]]
        traffic = PERCEPTRON_BYTES / part["servers"]
        waits = [wait for one in seen[:2] for wait in one.waits]
        if curve["synchronous"]:
            return synchronous_costs(seen[0], seen[1], self.cores, traffic), waits
        return asynchronous_costs(seen[:2], self.cores, traffic), waits

    def training_predictions(self) -> list[Prediction]:
        """Figure 7 as measured and as simulated, in seconds in which each worker makes a step."""
        found = []
        for curve in self.parts["figure7"]["curves"]:
            costs, waits = self.training_costs[training_name(curve)]
            for seen in map(observation, curve["observed"][SUBJECT]):
                aggregated = seen.workers if curve["synchronous"] else None
                run = predicted(costs, seen, self.cores, aggregated, waits)
                found.append(
                    Prediction(
                        training_name(curve),
                        _workers(seen.workers),
                        seen.step_time,
                        seen.workers / run.steps_per_second,
                        seen.workers <= 2,
                    )
                )
        return found

    @cached_property
    def training_cluster(self) -> dict[str, list[tuple[int, float, float]]]:
        """Figure 7 on a simulated cluster: workers, steps a second, median time of a step."""
        part = self.parts["figure7"]
        found = {}
        for curve in part["curves"]:
            if not curve["accelerator"]:
                continue
            costs, waits = self.training_costs[training_name(curve)]
            scalar = self.null_costs["scalar"]
            costs = spread_over(costs, part["servers"], CLUSTER_SERVERS, scalar)
            points = []
            for count in self.sizes:
                aggregated = count if curve["synchronous"] else None
                run = on_cluster(costs, count, CLUSTER_SERVERS, aggregated, waits, steps=25)
                points.append((count, run.steps_per_second, run.median_step))
            found[training_name(curve)] = points
        return found

    # Figure 8 ---------------------------------------------------------------------------------

    def _straggling(self) -> tuple[StepCosts, list[float]]:
        """The costs of a synchronous step, and times of accelerators of which some straggle."""
        [curve] = [
            curve
            for curve in self.parts["figure7"]["curves"]
            if curve["synchronous"] and curve["accelerator"]
        ]
        costs, _ = self.training_costs[training_name(curve)]
        return costs, self.parts["figure8"]["observed"][0]["waits"]

    def backup_predictions(self) -> list[Prediction]:
        """Figure 8 as measured and as simulated, in seconds between updates."""
        part = self.parts["figure8"]
        costs, waits = self._straggling()
        found = []
        for stored in part["observed"]:
            seen = observation(stored)
            run = predicted(costs, seen, self.cores, part["replicas"], waits, elastic=True)
            found.append(
                Prediction(
                    f"{part['replicas']} workers and backups",
                    f"{stored['backups']} backups",
                    1 / seen.updates,
                    1 / run.updates_per_second,
                    stored["backups"] == 0,
                )
            )
        return found

    @cached_property
    def backup_cluster(self) -> dict[int, list[tuple[int, float, float]]]:
        """Figure 8 on a simulated cluster: for a number of workers, the backups' step times.

        Each is the number of backups, the median time of a step, and the mean.
        """
        costs, waits = self._straggling()
        servers = self.parts["figure8"]["servers"]
        costs = spread_over(costs, servers, CLUSTER_SERVERS, self.null_costs["scalar"])
        found = {}
        for replicas in (size for size in (50, 200) if size <= max(self.sizes)):
            points = []
            for backups in BACKUPS:
                total = replicas + backups
                run = on_cluster(costs, total, CLUSTER_SERVERS, replicas, waits, 60, elastic=True)
                points.append((backups, run.median_update, 1 / run.updates_per_second))
            found[replicas] = points
        return found

    # Figure 9 ---------------------------------------------------------------------------------

    @cached_property
    def _language_calibrated(self) -> dict[bool, tuple[StepCosts, StepCosts]]:
        """The costs of a step, with full and sampled softmax, on one and on two servers."""
        return {sampled: self._one_and_two(sampled) for sampled in (False, True)}

    def _one_and_two(self, sampled: bool) -> tuple[StepCosts, StepCosts]:
        observed = {
            (curve["workers"], stored["servers"]): observation(stored)
            for curve in self.parts["figure9"]["curves"]
            if curve["sampled"] == sampled
            for stored in curve["observed"]
        }
        rows = (SAMPLED + 2 * WORDS_A_STEP) if sampled else 2 * WORDS_A_STEP
        traffic = 2.0 * 4 * UNITS * rows
        return (
            asynchronous_costs([observed[1, 1]], self.cores, traffic),
            asynchronous_costs([observed[1, 2]], self.cores, traffic),
        )

    def _language_costs(self, sampled: bool, servers: int) -> StepCosts:
        """The costs of a step, by how its costs on one and two servers differ."""
        one, two = self._language_calibrated[sampled]
        # A part of a server's work is divided among the servers, another is not.
        divided = min(one.server, max(0.0, 2 * (one.server - two.server)))
        return StepCosts(
            worker=statistics.mean([one.worker, two.worker]),
            server=one.server - divided + divided / servers,
            latency=statistics.mean([one.latency, two.latency]),
            traffic=one.traffic / servers,
        )

    def language_predictions(self) -> list[Prediction]:
        """Figure 9 as measured and as simulated, in seconds in which each worker makes a step."""
        found = []
        for curve in self.parts["figure9"]["curves"]:
            for seen in map(observation, curve["observed"]):
                costs = self._language_costs(curve["sampled"], seen.servers)
                run = predicted(costs, seen, self.cores, None, ())
                found.append(
                    Prediction(
                        f"{softmax_name(curve['sampled'])} softmax, {_workers(curve['workers'])}",
                        f"{seen.servers} servers",
                        seen.step_time,
                        seen.workers / run.steps_per_second,
                        seen.workers == 1 and seen.servers <= 2,
                    )
                )
        return found

    @cached_property
    def language_cluster(self) -> dict[tuple[bool, int], Points]:
        """Figure 9 on a simulated cluster: words a second against servers."""
        found = {}
        for sampled in (True, False):
            for workers in (size for size in LANGUAGE_WORKERS if size <= max(self.sizes)):
                points: Points = []
                for servers in LANGUAGE_SERVERS:
                    costs = self._language_costs(sampled, servers)
                    run = on_cluster(costs, workers, servers, None, (), steps=12)
                    points.append((servers, run.steps_per_second * WORDS_A_STEP))
                found[sampled, workers] = points
        return found

    def predictions(self) -> list[Prediction]:
        """Of all figures that were measured."""
        of_figures = {
            "figure6": self.null_predictions,
            "figure7": self.training_predictions,
            "figure8": self.backup_predictions,
            "figure9": self.language_predictions,
        }
        return [one for name, make in of_figures.items() if name in self.parts for one in make()]


def null_name(curve: dict[str, Any]) -> str:
    """The name of a kind of null step."""
    return f"{curve['kind']} {curve['megabytes']} MB" if curve["megabytes"] else curve["kind"]


def training_name(curve: dict[str, Any]) -> str:
    """The name of a curve of figure 7."""
    kind = "synchronous" if curve["synchronous"] else "asynchronous"
    return f"{kind}, {'50 ms of accelerator' if curve['accelerator'] else 'CPU only'}"


def softmax_name(sampled: bool) -> str:
    """The name of a softmax."""
    return "sampled" if sampled else "full"


def _workers(count: int) -> str:
    return f"{count} worker{'s' if count > 1 else ''}"
