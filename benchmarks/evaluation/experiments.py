"""Figures 6 to 9 of the paper, as far as this machine holds their processes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.evaluation.fleet import Fleet, Observation, TaskFailed, held_workers
from benchmarks.evaluation.step_times import StepTimes
from benchmarks.trial import SUBJECT

PEER = "tensorflow"
SERVERS = 2
"""Parameter servers of figures 6, 7 and 8."""
MOST_SERVERS = 4
Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure."""

    workers: tuple[int, ...] = (1, 2, 4, 8, 16)
    peer_workers: tuple[int, ...] = (1, 2, 4)
    warm_up: float = 1.0
    """Seconds after the first steps that are not looked at: runnel compiles meanwhile."""
    seconds: float = 1.5
    """How long a null step is looked at; training several times as long."""
    dense: tuple[int, ...] = (10, 100)
    sparse: tuple[int, ...] = (100, 1024)
    """Megabytes of all servers together."""
    replicas: int = 8
    backups: tuple[int, ...] = (0, 1, 2, 3, 4, 6)
    servers: tuple[int, ...] = (1, 2, 4)
    speakers: tuple[int, ...] = (1, 4)
    """Workers that train the language model."""
    kills: int = 3
    staleness_seconds: float = 12.0
    elastic_seconds: float = 6.0
    """Of each phase."""

    @property
    def most_workers(self) -> int:
        """How many worker processes there must be."""
        return max(*self.workers, self.replicas + max(self.backups), *self.speakers)


QUICK = Plan(
    workers=(1, 2, 4),
    peer_workers=(1, 2),
    warm_up=0.3,
    seconds=0.5,
    dense=(10,),
    sparse=(10,),
    replicas=3,
    backups=(0, 1),
    servers=(1, 2),
    speakers=(1,),
    kills=1,
    staleness_seconds=3.0,
    elastic_seconds=2.0,
)

ACCELERATOR = StepTimes(seconds=0.05, spread=0.1)
"""What a step of figure 7 waits for, in place of an accelerator."""
STRAGGLING = StepTimes(seconds=0.05, spread=0.15, straggling=0.04, times=3.0)
"""The same of figure 8."""


class Fleets:
    """The processes of runnel and of its peer, side by side: they take turns, size by size."""

    def __init__(self, plan: Plan, say: Callable[[str], None], peer: bool, most: int) -> None:
        self._plan, self._say, self._peer = plan, say, peer
        self.most_workers = min(most, held_workers(plan.most_workers))
        self.notes: list[str] = []
        self._stack = ExitStack()
        self._fleets: dict[str, Fleet] = {}

    def __enter__(self) -> Fleets:
        self._open(SUBJECT, MOST_SERVERS, self.most_workers)
        if self._peer:
            try:
                self._open(PEER, SERVERS, min(self.most_workers, max(self._plan.peer_workers)))
            except TaskFailed as failure:
                self._without_peer(failure)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _open(self, frontend: str, servers: int, workers: int) -> None:
        fleet = Fleet(frontend, servers, workers)
        self._fleets[frontend] = self._stack.enter_context(fleet)

    def _without_peer(self, failure: TaskFailed) -> None:
        self.notes.append(f"TensorFlow failed: {failure}")
        self._say(self.notes[-1])
        self._fleets.pop(PEER, None)

    def observe(
        self, program: str, seconds: float, peer: bool = False, **arguments: Any
    ) -> dict[str, Results]:
        """One size, of runnel and, where it is asked for, of its peer."""
        found = {SUBJECT: self._one(SUBJECT, program, seconds, arguments)}
        if peer and PEER in self._fleets and arguments["workers"] in self._plan.peer_workers:
            try:
                found[PEER] = self._one(PEER, program, seconds, arguments)
            except TaskFailed as failure:
                self._without_peer(failure)
        return found

    def _one(
        self, frontend: str, program: str, seconds: float, arguments: dict[str, Any]
    ) -> Results:
        seen: Observation = self._fleets[frontend].observe(
            program, self._plan.warm_up, seconds, **arguments
        )
        shown = {name: value for name, value in arguments.items() if name != "times"}
        self._say(
            f"  {frontend} {program} {shown}: {seen.rate:.1f} steps/s, "
            f"others took {seen.others_cpu:.2f} cores"
        )
        return asdict(seen)

    def sizes(self) -> list[int]:
        """The numbers of workers that the machine holds."""
        return [count for count in self._plan.workers if count <= self.most_workers]


def _collected(runs: list[dict[str, Results]]) -> dict[str, list[Results]]:
    """The observations of each contender, size by size."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: [run[name] for run in runs if name in run] for name in names}


def figure6(plan: Plan, fleets: Fleets) -> Results:
    """Null steps against the number of workers."""
    kinds = [("scalar", 0)]
    kinds += [("sparse", size) for size in plan.sparse] + [("dense", size) for size in plan.dense]
    curves = []
    for kind, megabytes in kinds:
        runs = [
            fleets.observe(
                "null_step",
                plan.seconds,
                peer=True,
                workers=count,
                servers=SERVERS,
                kind=kind,
                megabytes=float(megabytes),
            )
            for count in fleets.sizes()
        ]
        curves.append({"kind": kind, "megabytes": megabytes, "observed": _collected(runs)})
    return {"servers": SERVERS, "curves": curves}


def figure7(plan: Plan, fleets: Fleets) -> Results:
    """Training against the number of workers: asynchronous and synchronous."""
    curves = []
    for waiting in (True, False):
        for synchronous in (False, True):
            runs = []
            for count in fleets.sizes():
                more: dict[str, Any] = {"times": asdict(ACCELERATOR)} if waiting else {}
                if synchronous:
                    more["aggregated"] = count
                runs.append(
                    fleets.observe(
                        "perceptron",
                        2 * plan.seconds,
                        peer=True,
                        workers=count,
                        servers=SERVERS,
                        **more,
                    )
                )
            about = {"synchronous": synchronous, "accelerator": waiting}
            curves.append({**about, "observed": _collected(runs)})
    return {"servers": SERVERS, "times": asdict(ACCELERATOR), "curves": curves}


def figure8(plan: Plan, fleets: Fleets) -> Results:
    """Synchronous training with backup workers, where some steps straggle."""
    replicas = min(plan.replicas, max(1, fleets.most_workers * 3 // 4))
    observed = []
    for backups in (b for b in plan.backups if replicas + b <= fleets.most_workers):
        found = fleets.observe(
            "perceptron",
            5 * plan.seconds,
            workers=replicas + backups,
            servers=SERVERS,
            aggregated=replicas,
            elastic=True,
            times=asdict(STRAGGLING),
        )
        observed.append({"backups": backups, **found[SUBJECT]})
    about = {"servers": SERVERS, "replicas": replicas, "times": asdict(STRAGGLING)}
    return {**about, "observed": observed}


def figure9(plan: Plan, fleets: Fleets) -> Results:
    """The language model against the number of parameter servers, by full and sampled softmax."""
    curves = []
    for sampled in (True, False):
        for count in plan.speakers:
            observed = [
                fleets.observe(
                    "language_model",
                    (2 if sampled else 4) * plan.seconds,
                    workers=count,
                    servers=servers,
                    sampled=sampled,
                )[SUBJECT]
                for servers in plan.servers
            ]
            curves.append({"sampled": sampled, "workers": count, "observed": observed})
    return {"curves": curves}


FIGURES: dict[str, Callable[[Plan, Fleets], Results]] = {
    "figure6": figure6,
    "figure7": figure7,
    "figure8": figure8,
    "figure9": figure9,
}
