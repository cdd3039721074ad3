"""Checkpoints: a gigabyte saved and restored beside TensorFlow, and training beside saving.

`python -m benchmarks.checkpoints` measures every row; `--rows save` only some, `--quick` with fewer
rounds. The results go to `benchmarks/results/checkpoints.json`.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import command
from benchmarks.interleaving import Spread, times_faster
from benchmarks.results import Row, now, samples_of
from benchmarks.trial import SUBJECT, Outcome, Settings, Trial, durations, speed_row

CONTENDERS = (SUBJECT, "tensorflow")
WORKLOADS = "benchmarks.workloads.checkpoints"
MEGABYTES = 1024
UNITS = 2048
DEADLINE = 600.0
EXTRA = 0.10


def _whole(settings: Settings, what: str, done: str) -> list[Row]:
    """How fast a gigabyte is saved or restored, and how much memory that takes."""
    with Trial(settings, CONTENDERS, DEADLINE) as trial:
        outcome = trial.measure(
            f"{WORKLOADS}:saving_or_restoring",
            {"what": what, "megabytes": MEGABYTES},
            rounds=settings.rounds,
            iterations=2,
        )
    return [
        speed_row(
            what,
            f"64 variables of 16 MB {done}",
            "ms",
            outcome,
            durations(outcome, 1e3),
            must_show="no slower than TensorFlow",
            at_least={"tensorflow": 1.0},
        ),
        _extra_memory(what, done, outcome),
    ]


def _extra_memory(what: str, done: str, outcome: Outcome) -> Row:
    shares = {name: Spread.of([facts["extra"]]) for name, facts in outcome.facts.items()}
    ours = shares.get(SUBJECT)
    return Row(
        name=f"{what}_memory",
        what=f"memory that the same takes the first time, over that of the variables {done}",
        unit="of theirs",
        values=shares,
        must_show="under 10 %",
        passed=ours is not None and ours.median < EXTRA,
        notes=outcome.failures(),
        measured=now(),
        samples={},
    )


def save(settings: Settings) -> list[Row]:
    """A gigabyte saved."""
    return _whole(settings, "save", "saved")


def restore(settings: Settings) -> list[Row]:
    """A gigabyte restored into a new session."""
    return _whole(settings, "restore", "restored")


def background(settings: Settings) -> list[Row]:
    """Training steps while checkpoints are written, over the same steps without."""
    programs = {
        f"{SUBJECT}, {saving}": (
            f"{WORKLOADS}:training",
            {"frontend": settings.frontend(SUBJECT), "saving": saving, "hidden_units": UNITS},
        )
        for saving in ("nothing", "background")
    }
    with Trial(settings, list(programs)) as trial:
        outcome = trial.measure(programs, rounds=2 * settings.rounds, iterations=40)
    measured = outcome.measurements
    ratio = times_faster(measured, f"{SUBJECT}, nothing", f"{SUBJECT}, background")
    times = durations(outcome, 1e3)
    return [
        Row(
            name="background",
            what=f"training step of a perceptron 784-{UNITS}-{UNITS}-10 on batches of 100, a "
            "checkpoint saved in the background every 20 steps, over the same without",
            unit="times",
            values={} if ratio is None else {SUBJECT: ratio},
            must_show="within 5 %",
            passed=ratio is not None and ratio.median <= 1.05,
            notes=(
                *[f"{n} failed: {m.failure}" for n, m in measured.items() if m.failure],
                "; ".join(f"{name} {spread.median:.3g} ms" for name, spread in times.items()),
            ),
            measured=now(),
            samples=samples_of(measured),
        )
    ]


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    function.__name__: function for function in (save, restore, background)
}


if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Measure checkpoints beside TensorFlow's.")
    command.run("checkpoints", "checkpoints", ROWS, parser)
