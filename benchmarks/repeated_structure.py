"""Networks of equal parts, beside TensorFlow: unrolled LSTMs, an encoder, two thousand layers.

`python -m benchmarks.repeated_structure` measures every row, `--rows long_lstm` only some. A round
is a new process for each contender. The results go to `benchmarks/results/repeated_structure.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import command
from benchmarks.first_steps import CONTENDERS, MILLI, STEPS, measured_rounds
from benchmarks.results import Row
from benchmarks.trial import Settings, durations, speed_row
from benchmarks.workloads.first_steps import AFTER

MODELS = {
    "unrolled_lstm": "LSTM of 128 unrolled for 28 steps, batch 64, Adam",
    "long_lstm": "LSTM of 128 unrolled for 200 steps, batch 64, Adam",
    "encoder": "encoder of 12 layers, 64 wide, 16 places, batch 8, dropout, Adam",
    "equal_layers": "2,000 dense layers of 16, batch 32, gradient descent",
}
DEADLINE = 1_800.0
"""TensorFlow takes minutes to describe thousands of layers."""


def repeated_structure(model: str, settings: Settings) -> list[Row]:
    """The pace of one network when it has found it, and its first steps in total."""
    rounds = measured_rounds(model, settings, CONTENDERS, DEADLINE)
    sound = all(outcome.sound() for outcome in rounds.outcomes)
    later, sums = rounds.outcome(rounds.fact("after")), rounds.outcome(rounds.sums)
    return [
        speed_row(
            f"{model}_later",
            f"{MODELS[model]}: a step after the first {AFTER}",
            "ms",
            later,
            durations(later, MILLI),
            must_show="no slower than TensorFlow",
            at_least={"tensorflow": 1.0},
            holds=sound,
        ),
        speed_row(
            f"{model}_all",
            f"{MODELS[model]}: first {STEPS} steps, compilation included",
            "s",
            sums,
            durations(sums, 1.0),
            must_show="no slower than TensorFlow",
            at_least={"tensorflow": 1.0},
            holds=sound,
        ),
    ]


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    model: partial(repeated_structure, model) for model in MODELS
}


if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Measure networks of equal parts beside TensorFlow.")
    command.run("repeated_structure", "repeated structure", ROWS, parser)
