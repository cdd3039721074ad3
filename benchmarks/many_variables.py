"""Steps with hundreds and thousands of small variables, beside TensorFlow.

`python -m benchmarks.many_variables` measures every row; `--rows steps` only some, `--quick` with
fewer and shorter rounds. The results go to `benchmarks/results/many_variables.json`.
"""

from __future__ import annotations

from benchmarks import command
from benchmarks.interleaving import Spread
from benchmarks.results import Row, now, samples_of
from benchmarks.trial import SUBJECT, Settings, Trial, durations, speed_row

CONTENDERS = (SUBJECT, "tensorflow")
WORKLOADS = "benchmarks.workloads.many_variables"
MILLI = 1e3
FEW, MANY = 300, 3_000
DEADLINE = 900.0
"""TensorFlow takes minutes to describe thousands of variables with Adam."""


def steps(settings: Settings) -> list[Row]:
    """Training steps."""
    rows = []
    for variables in (FEW, MANY):
        with Trial(settings, CONTENDERS, DEADLINE) as trial:
            outcome = trial.measure(
                f"{WORKLOADS}:training_step", {"variables": variables}, compared="values"
            )
        rows.append(
            speed_row(
                f"step_{variables}",
                f"{variables:,} variables of 8 numbers with Adam, one step",
                "ms",
                outcome,
                durations(outcome, MILLI),
                must_show="no slower than TensorFlow",
                at_least={"tensorflow": 1.0},
            )
        )
    return rows


def building(settings: Settings) -> list[Row]:
    """Describing the step: beside TensorFlow, and for ten times as many variables."""
    with Trial(settings, CONTENDERS, DEADLINE) as trial:
        few = trial.measure(
            f"{WORKLOADS}:building", {"variables": FEW}, rounds=settings.rounds, iterations=1
        )
    with Trial(settings, (SUBJECT,), DEADLINE) as trial:
        many = trial.measure(
            f"{WORKLOADS}:building", {"variables": MANY}, rounds=settings.rounds, iterations=1
        )
    times, growth = durations(many, 1.0), {}
    if SUBJECT in times and SUBJECT in (base := durations(few, 1.0)):
        growth = {SUBJECT: times[SUBJECT].scaled(FEW / MANY / base[SUBJECT].median)}
    return [
        speed_row(
            "building",
            f"describing {FEW} variables of 8 numbers with Adam",
            "ms",
            few,
            durations(few, MILLI),
            must_show="no slower than TensorFlow",
            at_least={"tensorflow": 1.0},
        ),
        Row(
            name="building_growth",
            what=f"time for one variable, describing {MANY:,} over describing {FEW}",
            unit="times",
            values=growth,
            must_show="time grows linearly",
            passed=_is_linear(growth),
            notes=(*few.failures(), *many.failures()),
            measured=now(),
            samples=samples_of(many.measurements),
        ),
    ]


def _is_linear(growth: dict[str, Spread]) -> bool:
    """Whether a variable among many costs about what one among few does.

    Half as much again is what the garbage collector and the caches take of a larger graph.
    """
    return SUBJECT in growth and growth[SUBJECT].median <= 1.5


ROWS = {"steps": steps, "building": building}

if __name__ == "__main__":
    command.run(
        "many_variables",
        "Many variables",
        ROWS,
        command.parser_for(ROWS, "Steps with many small variables."),
    )
