"""Data parallelism over two processes without a parameter server, beside PyTorch's.

`python -m benchmarks.collectives` measures it, `--quick` with fewer and shorter rounds. The results
go to `benchmarks/results/collectives.json`.
"""

from __future__ import annotations

from benchmarks import command
from benchmarks.results import Row
from benchmarks.trial import SUBJECT, Program, Settings, Trial, durations, speed_row

STEP = "benchmarks.workloads.data_parallel:training_step"
MILLI = 1e3


def data_parallel(settings: Settings) -> list[Row]:
    """A perceptron on two workers, their gradients averaged at each step."""
    programs: dict[str, Program] = {
        SUBJECT: (STEP, {"contender": "runnel"}),
        "torch": (STEP, {"contender": "torch"}),
    }
    with Trial(settings, list(programs), 120.0) as trial:
        outcome = trial.measure(programs, compared="losses", agreement=1e-3)
    return [
        speed_row(
            "data_parallel",
            "2 workers: a perceptron 784-1024-1024-10, batches of 128, gradient descent",
            "ms",
            outcome,
            durations(outcome, MILLI),
            must_show="at least DistributedDataParallel with Gloo",
            at_least={"torch": 1.0},
        )
    ]


ROWS = {"data_parallel": data_parallel}

if __name__ == "__main__":
    command.run(
        "collectives",
        "Data parallelism without a parameter server",
        ROWS,
        command.parser_for(ROWS, "Steps of two workers that exchange gradients."),
    )
