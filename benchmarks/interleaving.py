"""Interleaved measurement: contenders take turns, so that a slow minute of the machine hits all.

A *contender* can be asked for one sample at a time. `interleave` asks all of them once in every
round, in an order that is reversed from round to round, and keeps every sample. Ratios are taken
within a round, between samples that lie next to each other in time; their median and quartiles
are what the tables show.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

REPOSITORY = Path(__file__).resolve().parent.parent


class ContenderFailed(Exception):
    """A contender crashed, gave a wrong answer or passed its deadline."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one unit of work cost in one round: seconds on the clock, seconds of CPU time."""

    wall: float
    cpu: float
    resident_bytes: int = 0
    """Resident memory of the contender after the round, where it lives on."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its quartiles.

    >>> Spread.of([1.0, 2.0, 3.0])
    Spread(median=2.0, low=1.5, high=2.5)
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Summarise one or more values."""
        ordered = sorted(values)
        if len(ordered) == 1:
            return cls(ordered[0], ordered[0], ordered[0])
        low, median, high = statistics.quantiles(ordered, n=4, method="inclusive")
        return cls(median, low, high)

    def scaled(self, factor: float) -> Spread:
        """The same spread in another unit."""
        return Spread(self.median * factor, self.low * factor, self.high * factor)

    def rate(self, units: float = 1.0) -> Spread:
        """Turn seconds for `units` units of work into units a second."""
        return Spread(units / self.median, units / self.high, units / self.low)


class Contender(Protocol):
    """Something that can be measured one sample at a time."""

    name: str

    def sample(self) -> Sample:
        """Do the work once more and say what it cost; raises `ContenderFailed`."""
        ...


@dataclass(slots=True)
class Measurement:
    """Every sample of one contender, in the order of the rounds."""

    samples: list[Sample] = field(default_factory=list)
    failure: str | None = None

    @property
    def wall(self) -> Spread:
        """Seconds on the clock for one unit of work."""
        return Spread.of(sample.wall for sample in self.samples)

    @property
    def cpu(self) -> Spread:
        """Seconds of CPU time, all threads together, for one unit of work."""
        return Spread.of(sample.cpu for sample in self.samples)


Measurements = Mapping[str, Measurement]


def interleave(contenders: Sequence[Contender], rounds: int) -> dict[str, Measurement]:
    """Sample every contender once a round; one that fails is left out of the later rounds."""
    measurements = {contender.name: Measurement() for contender in contenders}
    for number in range(rounds):
        # Reversing every second round cancels a drift of the machine within a round.
        for contender in contenders if number % 2 == 0 else reversed(contenders):
            measurement = measurements[contender.name]
            if measurement.failure is not None:
                continue
            try:
                measurement.samples.append(contender.sample())
            except ContenderFailed as failure:
                measurement.failure = str(failure)
                measurement.samples.clear()
    return measurements


def times_faster(
    measurements: Measurements, subject: str, peer: str, *, clock: str = "wall"
) -> Spread | None:
    """How many times faster `subject` is than `peer`: the ratio of each round, then the median.

    None where one of them was not measured.
    """
    if subject not in measurements or peer not in measurements:
        return None
    ours, theirs = measurements[subject].samples, measurements[peer].samples
    if not ours or not theirs:
        return None
    return Spread.of(
        getattr(their, clock) / getattr(our, clock) for our, their in zip(ours, theirs, strict=True)
    )


# Several processes share the accelerator: JAX must not take most of its memory for each.
SETTINGS = {
    "cpu": {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu"},
    "gpu": {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.2"},
}


def environment(platform: str = "cpu") -> dict[str, str]:
    """The environment of every measured process: quiet, the repository importable.

    Bytecode is kept, as it is for every installed package: a variable that forbids it would have
    only the repository, which is not installed, compiled at each start.
    """
    return {
        **os.environ,
        **SETTINGS[platform],
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONDONTWRITEBYTECODE": "",
        "RUNNEL_CACHE_SIZE": "0",  # no run profits from an earlier one
        "PYTHONPATH": os.pathsep.join(
            filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH", "")))
        ),
    }


@dataclass(slots=True)
class Command:
    """A contender that is a whole process: started, run to its end, and charged for all of it."""

    name: str
    arguments: Sequence[str]
    deadline: float = 120.0

    def sample(self) -> Sample:
        """Run the command once; its CPU time includes that of the children it waited for."""
        started = time.perf_counter()
        process = subprocess.Popen(
            self.arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd=REPOSITORY,
        )
        before = _children_cpu()
        try:
            _, errors = process.communicate(timeout=self.deadline)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise ContenderFailed(f"still running after {self.deadline:.0f} s") from None
        wall = time.perf_counter() - started
        # Commands run one at a time, so the growth of the children's time is this command's.
        cpu = _children_cpu() - before
        if process.returncode != 0:
            raise ContenderFailed(
                f"exit status {process.returncode}: {last_line(errors.decode(errors='replace'))}"
            )
        return Sample(wall, cpu)


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def last_line(text: str) -> str:
    """The last line of a process's error output that says something."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no error output"
