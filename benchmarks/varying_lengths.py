"""Training on sequences of many lengths, and batches of many sizes, beside TensorFlow.

`python -m benchmarks.varying_lengths` measures every row; `--rows lengths` only some, `--quick` in
fewer rounds. The results go to `benchmarks/results/varying_lengths.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import command
from benchmarks.interleaving import Measurement
from benchmarks.results import Row
from benchmarks.trial import SUBJECT, Outcome, Settings, Trial, durations, speed_row

CONTENDERS = (SUBJECT, "tensorflow")
STEPS = 1_200
ROUNDS = 3
"""A round is a new process for each contender: only one has never compiled anything."""
WHAT = {
    "length": "batch 32, 50 lengths from 10 to 59 in turn",
    "batch": "30 steps, 50 sizes of the batch from 10 to 59 in turn",
}


def training(varying: str, settings: Settings) -> list[Row]:
    """All of a training, with whatever is compiled meanwhile."""
    measurements: dict[str, Measurement] = {}
    outcomes: list[Outcome] = []
    for number in range(min(ROUNDS, settings.rounds)):
        order = CONTENDERS if number % 2 == 0 else CONTENDERS[::-1]
        with Trial(settings, order, deadline=600.0) as trial:
            outcome = trial.measure(
                "benchmarks.workloads.varying_lengths:training",
                {"varying": varying, "steps": STEPS},
                rounds=1,
                iterations=1,
                compared="losses",
            )
        outcomes.append(outcome)
        for name, measurement in outcome.measurements.items():
            total = measurements.setdefault(name, Measurement())
            total.failure = total.failure or measurement.failure
            total.samples += measurement.samples
    together = Outcome(measurements, outcomes[-1].facts, "losses")
    return [
        speed_row(
            varying,
            f"`dynamic_rnn`, LSTM of 64, {WHAT[varying]}: {STEPS:,} training steps, all included",
            "s",
            together,
            durations(together, 1.0),
            must_show="no slower than TensorFlow",
            at_least={"tensorflow": 1.0},
            holds=all(outcome.sound() for outcome in outcomes),
        )
    ]


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    "lengths": partial(training, "length"),
    "batches": partial(training, "batch"),
}

if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Training on many lengths beside TensorFlow.")
    command.run("varying_lengths", "Varying lengths", ROWS, parser)
