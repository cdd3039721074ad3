"""Summaries at every step of training, beside TensorFlow.

`python -m benchmarks.summaries` measures every row; `--rows progress` only some, `--quick` with
fewer and shorter rounds. The results go to `benchmarks/results/summaries.json`.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import command
from benchmarks.interleaving import times_faster
from benchmarks.results import Row, now, samples_of
from benchmarks.trial import SUBJECT, Settings, Trial, durations

CONTENDERS = (SUBJECT, "tensorflow")
WORKLOAD = "benchmarks.workloads.summaries:training"
UNITS = 2048


def _beside_none(settings: Settings, summarized: str, what: str, demanded: bool) -> list[Row]:
    """The time of a summarized step over that of the same step alone."""
    programs = {
        f"{name}, {part}": (
            WORKLOAD,
            {"frontend": settings.frontend(name), "summarized": part, "hidden_units": UNITS},
        )
        for name in CONTENDERS
        for part in ("nothing", summarized)
    }
    with Trial(settings, list(programs)) as trial:
        outcome = trial.measure(programs, rounds=2 * settings.rounds)
    measured = outcome.measurements
    ratios = {
        name: ratio
        for name in CONTENDERS
        if (ratio := times_faster(measured, f"{name}, nothing", f"{name}, {summarized}"))
    }
    ours = ratios.get(SUBJECT)
    times = durations(outcome, 1e3)
    return [
        Row(
            name=summarized,
            what=f"training step of a perceptron 784-{UNITS}-{UNITS}-10 on batches of 100 with "
            f"{what}, written each step, over the same without",
            unit="times",
            values=ratios,
            must_show="within 5 %" if demanded else None,
            passed=(ours is not None and ours.median <= 1.05) if demanded else None,
            notes=(
                *[
                    f"{name} failed: {measurement.failure}"
                    for name, measurement in measured.items()
                    if measurement.failure
                ],
                "; ".join(f"{name} {spread.median:.3g} ms" for name, spread in times.items()),
            ),
            measured=now(),
            samples=samples_of(measured),
        )
    ]


def progress(settings: Settings) -> list[Row]:
    """What is watched while training: the loss, the last layer's norm and distribution."""
    what = "summaries of the loss and of the last layer's norm and distribution, 20,480 weights"
    return _beside_none(settings, "progress", what, demanded=True)


def weights(settings: Settings) -> list[Row]:
    """The same of every layer: millions of numbers."""
    what = "summaries of the loss and of all layers' norms and distributions, 5.8 million weights"
    return _beside_none(settings, "weights", what, demanded=False)


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    function.__name__: function for function in (progress, weights)
}


if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Measure summaries at every step beside TensorFlow's.")
    command.run("summaries", "summaries at every step", ROWS, parser)
