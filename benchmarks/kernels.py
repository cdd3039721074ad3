"""Single operations of every family, interpreted, beside TensorFlow's kernels.

`python -m benchmarks.kernels` measures every family, `--rows sparse,images` only some, `--quick`
with fewer and shorter rounds. The results go to `benchmarks/results/kernels.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks import command
from benchmarks.interleaving import Spread, times_faster
from benchmarks.results import Row, now, samples_of
from benchmarks.tables import number
from benchmarks.trial import SUBJECT, Outcome, Settings, Trial
from benchmarks.workloads.kernels import FAMILIES, RANDOM

CONTENDERS = (SUBJECT, "tensorflow")
WORKLOAD = "benchmarks.workloads.kernels:operation"
LIMIT = 3.0
NAMED = 5
"""Of so many operations that take longer than TensorFlow's, notes tell."""
SECONDS, WARM_UP = 0.03, 0.1
"""A step takes microseconds, and nothing compiles."""


def family(name: str, settings: Settings) -> list[Row]:
    """One row: how the operations of a family compare."""
    short = replace(
        settings,
        seconds=min(settings.seconds, SECONDS),
        warm_up=min(settings.warm_up, WARM_UP),
    )
    compared = None if name == RANDOM else "values"
    with Trial(short, CONTENDERS) as trial:
        outcomes = {
            operation: trial.measure(
                WORKLOAD, {"family": name, "name": operation}, compared=compared
            )
            for operation in FAMILIES[name]
        }
    return [_row(name, outcomes)]


def _row(name: str, outcomes: dict[str, Outcome]) -> Row:
    measured = {
        operation: ratio.median
        for operation, outcome in outcomes.items()
        if (ratio := times_faster(outcome.measurements, SUBJECT, "tensorflow"))
    }
    worst = 1 / min(measured.values()) if measured else None
    failures = [
        f"{operation}: {failure}"
        for operation, outcome in outcomes.items()
        for failure in outcome.failures()
    ]
    sound = all(outcome.sound() for outcome in outcomes.values())
    return Row(
        name=name.replace(" ", "_"),
        what=f"{name}, {len(outcomes)} operations: the slowest beside TensorFlow's",
        unit="times",
        values={} if worst is None else {SUBJECT: Spread.of([worst])},
        faster_than={"tensorflow": Spread.of(measured.values())} if measured else {},
        must_show=f"no operation takes more than {LIMIT:g} times TensorFlow's time",
        passed=None if worst is None else sound and worst <= LIMIT,
        notes=(*failures, *_slowest(measured)),
        measured=now(),
        samples={
            f"{contender} {operation}": samples
            for operation, outcome in outcomes.items()
            for contender, samples in samples_of(outcome.measurements).items()
        },
    )


def _slowest(measured: dict[str, float]) -> list[str]:
    """A note on the operations that lose most to TensorFlow's."""
    behind = sorted((ratio, operation) for operation, ratio in measured.items() if ratio < 1)
    if not behind:
        return []
    named = ", ".join(f"{operation} {number(1 / ratio)}" for ratio, operation in behind[:NAMED])
    return [f"longest in times of TensorFlow's: {named}"]


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    name.replace(" ", "_"): partial(family, name) for name in FAMILIES
}

if __name__ == "__main__":
    command.run(
        "kernels",
        "Kernels of single operations",
        ROWS,
        command.parser_for(ROWS, "Single operations, interpreted."),
    )
