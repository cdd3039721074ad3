"""The first 500 steps of four networks: the first of all, the longest of the others, the sum.

`python -m benchmarks.first_steps` measures every row, `--rows mlp` only some. The results go to
`benchmarks/results/first_steps.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from benchmarks import command
from benchmarks.interleaving import Measurement, Sample, Spread
from benchmarks.results import Row, now
from benchmarks.tables import display_name
from benchmarks.trial import SUBJECT, Outcome, Settings, Trial, durations, speed_row
from benchmarks.workload import Facts

STEPS = 500
ROUNDS = 3
"""A round is a new process for each contender, and takes up to a minute."""
CONTENDERS = (SUBJECT, "tensorflow")
MILLI = 1e3
MOST_SECONDS, MOST_STEPS = 0.1, 4
"""How long a step may take: so many seconds, or so many interpreted steps."""

MODELS = {
    "mlp": "perceptron 784-128-64-10, batch 100, Adam",
    "convolutional": "two convolutions, two dense layers, 28 × 28, batch 50, Adam",
    "residual": "18 convolutional layers with batch normalisation, 32 × 32, batch 16, momentum",
    "unrolled_lstm": "LSTM of 128 unrolled for 28 steps, batch 64, Adam",
}


@dataclass
class Rounds:
    """What the processes of all rounds found."""

    sums: dict[str, Measurement] = field(default_factory=dict)
    facts: dict[str, list[Facts]] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Takes one more round."""
        self.outcomes.append(outcome)
        for name, measurement in outcome.measurements.items():
            total = self.sums.setdefault(name, Measurement())
            total.failure = total.failure or measurement.failure
            if name in outcome.facts:
                total.samples += measurement.samples
                self.facts.setdefault(name, []).append(outcome.facts[name])

    def fact(self, key: str) -> dict[str, Measurement]:
        """Seconds that the facts of each round tell, as measurements."""
        return {
            name: Measurement(
                [Sample(found[key], found[key]) for found in self.facts.get(name, [])],
                total.failure,
            )
            for name, total in self.sums.items()
        }

    def outcome(self, measurements: dict[str, Measurement]) -> Outcome:
        """The measurements, with the facts that contenders must agree on."""
        return Outcome(measurements, self.outcomes[-1].facts, "losses")


def measured_rounds(
    model: str, settings: Settings, contenders: tuple[str, ...], deadline: float
) -> Rounds:
    """The first steps of one network, in some rounds."""
    rounds = Rounds()
    for number in range(min(ROUNDS, settings.rounds)):
        order = contenders if number % 2 == 0 else contenders[::-1]
        # New processes for each round: only one has never compiled anything.
        with Trial(settings, order, deadline=deadline) as trial:
            rounds.add(
                trial.measure(
                    "benchmarks.workloads.first_steps:first_steps",
                    {"model": model, "steps": STEPS},
                    rounds=1,
                    iterations=1,
                    compared="losses",
                )
            )
    return rounds


def first_steps(model: str, settings: Settings) -> list[Row]:
    """The first steps of one network."""
    rounds = measured_rounds(model, settings, CONTENDERS, 600.0)
    what = f"{MODELS[model]}: "
    firsts, sums = rounds.outcome(rounds.fact("first")), rounds.outcome(rounds.sums)
    sound = all(outcome.sound() for outcome in rounds.outcomes)
    return [
        speed_row(
            f"{model}_first",
            f"{what}first step",
            "ms",
            firsts,
            durations(firsts, MILLI),
            must_show="within 2 times TensorFlow's",
            at_least={"tensorflow": 0.5},
            holds=sound,
        ),
        _longest(model, what, rounds, sound),
        speed_row(
            f"{model}_all",
            f"{what}first {STEPS} steps",
            "s",
            sums,
            durations(sums, 1.0),
            must_show="no slower than TensorFlow",
            at_least={"tensorflow": 1.0},
            holds=sound,
        ),
    ]


def _longest(model: str, what: str, rounds: Rounds, sound: bool) -> Row:
    """The longest step after the first, in the round in which it was the median."""
    ours = rounds.facts.get(SUBJECT, [])
    passed = sound and all(
        found["longest"] <= max(MOST_SECONDS, MOST_STEPS * found["early"]) for found in ours
    )
    return Row(
        name=f"{model}_longest",
        what=f"{what}longest step after the first",
        unit="ms",
        values={
            name: Spread.of(fact["longest"] * MILLI for fact in found)
            for name, found in rounds.facts.items()
        },
        must_show=f"at most {MOST_SECONDS * MILLI:.0f} ms, or {MOST_STEPS} interpreted steps",
        passed=passed if ours else None,
        notes=tuple(
            f"{display_name(name)}: typically {found[-1]['early'] * MILLI:.3g} ms at the beginning "
            f"and {found[-1]['late'] * MILLI:.3g} ms at the end"
            for name, found in rounds.facts.items()
        ),
        measured=now(),
    )


ROWS: dict[str, Callable[[Settings], list[Row]]] = {
    model: partial(first_steps, model) for model in MODELS
}


if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Measure runnel's first steps beside TensorFlow's.")
    command.run("first_steps", "first steps", ROWS, parser)
