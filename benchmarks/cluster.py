"""Parameter servers and workers in processes of their own, beside TensorFlow's servers.

`python -m benchmarks.cluster` measures every row; `--rows one,growth` only some, `--quick` with
fewer and shorter rounds. The results go to `benchmarks/results/cluster.json`.
"""

from __future__ import annotations

from typing import Any

from benchmarks import command
from benchmarks.results import Row
from benchmarks.trial import SUBJECT, Settings, Trial, durations, speed_row

CONTENDERS = (SUBJECT, "tensorflow")
NULL_STEP = "benchmarks.workloads.cluster:null_step"
MILLI = 1e3
DEADLINE = 300.0

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "scalar": ("a scalar read", {"kind": "scalar"}),
    "rows": ("32 rows of a table of 1 GB", {"kind": "rows", "megabytes": 1024.0}),
    "add": ("4 MB of the worker's added to a variable", {"kind": "add", "megabytes": 4.0}),
    "dense": ("100 MB read", {"kind": "dense", "megabytes": 100.0}),
}


def _row(
    settings: Settings, name: str, what: str, must_show: str, least: float, **arguments: Any
) -> Row:
    with Trial(settings, CONTENDERS, DEADLINE) as trial:
        outcome = trial.measure(NULL_STEP, arguments)
    return speed_row(
        name,
        what,
        "ms",
        outcome,
        durations(outcome, MILLI),
        must_show=must_show,
        at_least={"tensorflow": least},
    )


def one(settings: Settings) -> list[Row]:
    """One parameter server and one worker."""
    rows = []
    for kind, (what, arguments) in KINDS.items():
        least = 4.0 if kind == "dense" else 5.0
        must_show = f"at least {least:g} times TensorFlow"
        rows.append(_row(settings, f"one_{kind}", f"1 + 1: {what}", must_show, least, **arguments))
    return rows


def growth(settings: Settings) -> list[Row]:
    """More parameter servers and workers; all workers run at once."""
    rows = []
    for count in (2, 4):
        for kind, (what, arguments) in KINDS.items():
            if kind == "rows":
                what, arguments = "32 rows of a table of 256 MB", {**arguments, "megabytes": 256.0}
            rows.append(
                _row(
                    settings,
                    f"{count}_{kind}",
                    f"{count} + {count}: {what}, each worker",
                    "at least 4 times TensorFlow",
                    4.0,
                    servers=count,
                    workers=count,
                    **arguments,
                )
            )
    return rows


def tables(settings: Settings) -> list[Row]:
    """The size of a table does not matter when only some rows are read."""
    return [
        _row(
            settings,
            f"table_{size}",
            f"1 + 1: 32 rows of a table of {size} MB",
            "flat within 20 %",
            0.0,
            kind="rows",
            megabytes=float(size),
        )
        for size in (100, 1024, 4096)
    ]


def many(settings: Settings) -> list[Row]:
    """Eight workers on one parameter server."""
    return [
        _row(
            settings,
            "eight",
            "1 + 8: a scalar read, a step of each of the eight workers",
            "at least 3 times TensorFlow",
            3.0,
            kind="scalar",
            workers=8,
        )
    ]


def perceptron(settings: Settings) -> list[Row]:
    """Asynchronous training, between-graph."""
    return [
        _row(
            settings,
            "perceptron",
            "1 + 2: a perceptron 784-128-64-10, batches of 100, asynchronous, each worker",
            "at least 2 times TensorFlow",
            2.0,
            kind="mlp",
            workers=2,
        )
    ]


ROWS = {"one": one, "growth": growth, "tables": tables, "many": many, "perceptron": perceptron}

if __name__ == "__main__":
    command.run(
        "cluster",
        "A cluster",
        ROWS,
        command.parser_for(ROWS, "Steps over parameter servers and workers."),
    )
