"""A trial: contenders in processes of their own, one program after another, turned into rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from benchmarks.interleaving import (
    ContenderFailed,
    Measurement,
    Spread,
    interleave,
    times_faster,
)
from benchmarks.resident import Resident
from benchmarks.results import Row, cores, now, samples_of
from benchmarks.tables import display_name
from benchmarks.workload import Facts

SUBJECT = "runnel"
AGREEMENT = 1e-3
"""Relative tolerance of compared values: float32, summed in different orders."""

Program = tuple[str, dict[str, Any]]
"""Where a workload is made, `"package.module:function"`, and from which arguments."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How thoroughly to measure."""

    stand_in: str = SUBJECT
    """The module that is measured as runnel; another one shows what the method itself does."""
    rounds: int = 9
    seconds: float = 0.2
    """How long a round of a short workload lasts."""
    warm_up: float = 1.0
    steady_steps: int = 1_000_000
    torch_compile: bool = False

    def frontend(self, contender: str) -> str:
        """The module that a contender imports."""
        return self.stand_in if contender == SUBJECT else contender


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial of one program gave."""

    measurements: dict[str, Measurement]
    facts: dict[str, Facts]
    compared: str | None = None
    """The fact, a list of numbers, that must be the same for every contender."""
    agreement: float = AGREEMENT

    def failures(self) -> tuple[str, ...]:
        """A note for each contender that did not finish or computed something wrong."""
        notes = [
            f"{display_name(name)} failed: {measurement.failure}"
            for name, measurement in self.measurements.items()
            if measurement.failure is not None
        ]
        for name, facts in self.facts.items():
            if not facts.get("right", True):
                notes.append(f"{display_name(name)} computed a wrong result")
            if not self._agrees_with_subject(facts):
                notes.append(f"{display_name(name)} and runnel computed different {self.compared}")
        return tuple(notes)

    def sound(self) -> bool:
        """Whether runnel finished and nobody computed anything wrong."""
        return self.measurements[SUBJECT].failure is None and all(
            facts.get("right", True) and self._agrees_with_subject(facts)
            for facts in self.facts.values()
        )

    def _agrees_with_subject(self, facts: Facts) -> bool:
        if self.compared is None or SUBJECT not in self.facts:
            return True
        ours, theirs = self.facts[SUBJECT][self.compared], facts[self.compared]
        return len(theirs) == len(ours) and all(
            math.isclose(a, b, rel_tol=self.agreement, abs_tol=self.agreement)
            for a, b in zip(ours, theirs, strict=True)
        )


class Trial:
    """Processes for the named contenders, alive for as long as the context is open."""

    def __init__(
        self,
        settings: Settings,
        contenders: Sequence[str],
        deadline: float = 120.0,
        platform: str = "cpu",
    ):
        self._settings = settings
        self._residents: dict[str, Resident] = {}
        self._stack = ExitStack()
        for name in contenders:
            self._residents[name] = self._stack.enter_context(Resident(name, deadline, platform))

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def measure(
        self,
        programs: str | Mapping[str, Program],
        arguments: Mapping[str, Any] | None = None,
        *,
        rounds: int | None = None,
        iterations: int | None = None,
        compared: str | None = None,
        agreement: float = AGREEMENT,
        loading: int = 1,
    ) -> Outcome:
        """Measure one program in all contenders, or a program for each.

        `iterations` fixes the length of a round and leaves the warm-up out, for work whose first
        time is what counts. `compared` names the fact that all contenders must agree on, to within
        `agreement`. `loading` contenders prepare at a time; only one is ever measured.
        """
        if isinstance(programs, str):
            programs = {
                name: (
                    programs,
                    {"frontend": self._settings.frontend(name), **(arguments or {})},
                )
                for name in self._residents
            }
        failures: dict[str, Measurement] = {}
        ready: list[Resident] = []
        with ThreadPoolExecutor(loading) as pool:
            loaded = {
                name: pool.submit(self._residents[name].load, path, values)
                for name, (path, values) in programs.items()
            }
        for name, loading_done in loaded.items():
            resident = self._residents[name]
            try:
                loading_done.result()
                if iterations is None:
                    resident.calibrate(self._settings.seconds, self._settings.warm_up)
                else:
                    resident.iterations = iterations
                ready.append(resident)
            except ContenderFailed as failure:
                failures[name] = Measurement(failure=str(failure))
        measurements = interleave(ready, rounds or self._settings.rounds)
        facts = {
            resident.name: resident.facts()
            for resident in ready
            if measurements[resident.name].failure is None
        }
        return Outcome(
            {name: {**failures, **measurements}[name] for name in programs},
            facts,
            compared,
            agreement,
        )


def thread_notes(outcome: Outcome) -> list[str]:
    """A note for each contender that chose to use fewer threads than there are cores."""
    return [
        f"{display_name(name)} is faster with {facts['threads']} of {cores()} threads, "
        "and uses those"
        for name, facts in outcome.facts.items()
        if facts.get("threads", cores()) != cores()
    ]


def speed_row(
    name: str,
    what: str,
    unit: str,
    outcome: Outcome,
    values: Mapping[str, Spread],
    *,
    must_show: str | None = None,
    at_least: Mapping[str, float] | None = None,
    holds: bool = True,
    clock: str = "wall",
    notes: Sequence[str] = (),
) -> Row:
    """A row that compares speeds: it passes where every ratio in `at_least` is reached.

    A peer that could not be measured decides nothing, unless runnel itself fell short elsewhere.
    `holds` is whatever else the row demands.
    """
    ratios = {
        peer: ratio
        for peer in outcome.measurements
        if peer != SUBJECT
        and (ratio := times_faster(outcome.measurements, SUBJECT, peer, clock=clock))
    }
    passed: bool | None = None
    if must_show is not None:
        passed = outcome.sound() and holds
        for peer, bound in (at_least or {}).items():
            if peer in ratios:
                passed = passed and ratios[peer].median >= bound
            elif passed:
                passed = None
    return Row(
        name=name,
        what=what,
        unit=unit,
        values=dict(values),
        faster_than=ratios,
        must_show=must_show,
        passed=passed,
        notes=(*outcome.failures(), *notes),
        measured=now(),
        samples=samples_of(outcome.measurements),
    )


def durations(outcome: Outcome, scale: float, clock: str = "wall") -> dict[str, Spread]:
    """The time of one unit of work for each contender that was measured, times the scale."""
    return {
        name: getattr(measurement, clock).scaled(scale)
        for name, measurement in outcome.measurements.items()
        if measurement.samples
    }
