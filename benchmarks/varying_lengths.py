"""Training on many lengths, sizes of the batch, and numbers of boxes, beside TensorFlow.

`python -m benchmarks.varying_lengths` measures every row; `--rows lengths` only some, `--quick` in
fewer rounds. The results go to `benchmarks/results/varying_lengths.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import command
from benchmarks.interleaving import Measurement
from benchmarks.results import Row
from benchmarks.trial import SUBJECT, Outcome, Settings, Trial, durations, speed_row

CONTENDERS = (SUBJECT, "tensorflow")
STEPS = 1_200
ROUNDS = 3
"""A round is a new process for each contender: only one has never compiled anything."""
LSTM = "benchmarks.workloads.varying_lengths:training"
PROGRAMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "lengths": (
        LSTM,
        {"varying": "length"},
        "`dynamic_rnn`, LSTM of 64, batch 32, 50 lengths from 10 to 59 in turn",
    ),
    "batches": (
        LSTM,
        {"varying": "batch"},
        "`dynamic_rnn`, LSTM of 64, 30 steps, 50 sizes of the batch from 10 to 59 in turn",
    ),
    "boxes": (
        "benchmarks.workloads.detector:training",
        {},
        "detector over 4 pictures of 96 × 96 with four convolutions, 1 to 14 boxes",
    ),
}


def training(name: str, settings: Settings) -> list[Row]:
    """All of a training, with whatever is compiled meanwhile."""
    workload, arguments, what = PROGRAMS[name]
    measurements: dict[str, Measurement] = {}
    outcomes: list[Outcome] = []
    for number in range(min(ROUNDS, settings.rounds)):
        order = CONTENDERS if number % 2 == 0 else CONTENDERS[::-1]
        with Trial(settings, order, deadline=600.0) as trial:
            outcome = trial.measure(
                workload,
                {**arguments, "steps": STEPS},
                rounds=1,
                iterations=1,
                compared="losses",
            )
        outcomes.append(outcome)
        for contender, measurement in outcome.measurements.items():
            total = measurements.setdefault(contender, Measurement())
            total.failure = total.failure or measurement.failure
            total.samples += measurement.samples
    together = Outcome(measurements, outcomes[-1].facts, "losses")
    return [
        speed_row(
            name,
            f"{what}: {STEPS:,} training steps, all included",
            "s",
            together,
            durations(together, 1.0),
            must_show="no slower than TensorFlow",
            at_least={"tensorflow": 1.0},
            holds=all(outcome.sound() for outcome in outcomes),
        )
    ]


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    name: partial(training, name) for name in PROGRAMS
}

if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Training on many lengths beside TensorFlow.")
    command.run("varying_lengths", "Varying lengths", ROWS, parser)
