"""Data parallelism over two processes without a parameter server, beside PyTorch's.

`python -m benchmarks.collectives` measures it, `--quick` with fewer and shorter rounds. The results
go to `benchmarks/results/collectives.json`.
"""

from __future__ import annotations

from benchmarks import command
from benchmarks.results import Row
from benchmarks.trial import SUBJECT, Outcome, Program, Settings, Trial, durations, speed_row

WORKLOADS = "benchmarks.workloads.data_parallel"
MODEL = "a perceptron 784-1024-1024-10, batches of 128, gradient descent"
MILLI = 1e3
BY_XLA = "runnel.xla"
"""The same program; its groups exchange through XLA (Gloo), not by the tasks' connections."""


def _measured(
    settings: Settings, workload: str, contenders: tuple[str, ...] = (SUBJECT, BY_XLA, "pytorch")
) -> Outcome:
    programs: dict[str, Program] = {
        name: (f"{WORKLOADS}:{workload}", {"contender": name}) for name in contenders
    }
    with Trial(settings, list(programs), 300.0) as trial:
        return trial.measure(programs, compared="checked", agreement=1e-3)


def data_parallel(settings: Settings) -> list[Row]:
    """A perceptron on two workers, their gradients averaged at each step."""
    outcome = _measured(settings, "training_step")
    what = f"2 workers: {MODEL}"
    return [
        speed_row(
            "data_parallel",
            what,
            "ms",
            outcome,
            durations(outcome, MILLI),
            must_show="at least DistributedDataParallel with Gloo",
            at_least={"pytorch": 1.0},
        ),
        speed_row(
            "data_parallel_cpu",
            f"{what}: CPU time of one of them",
            "ms",
            outcome,
            durations(outcome, MILLI, "cpu"),
            clock="cpu",
        ),
    ]


def computing(settings: Settings) -> list[Row]:
    """The same step without anybody to exchange gradients with."""
    outcome = _measured(settings, "step_alone", (SUBJECT, "pytorch"))
    what = f"1 worker, nothing to exchange: {MODEL}"
    return [speed_row("computing", what, "ms", outcome, durations(outcome, MILLI))]


def exchange(settings: Settings) -> list[Row]:
    """The exchange alone."""
    outcome = _measured(settings, "exchange")
    what = "2 workers: the mean of 1.86 million float32, the number of that model's gradients"
    return [
        speed_row("exchange", what, "ms", outcome, durations(outcome, MILLI)),
        speed_row(
            "exchange_cpu",
            "the same: CPU time of one of them",
            "ms",
            outcome,
            durations(outcome, MILLI, "cpu"),
            clock="cpu",
        ),
    ]


ROWS = {"data_parallel": data_parallel, "computing": computing, "exchange": exchange}

if __name__ == "__main__":
    command.run(
        "collectives",
        "Data parallelism without a parameter server",
        ROWS,
        command.parser_for(ROWS, "Steps of two workers that exchange gradients."),
    )
