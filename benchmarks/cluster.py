"""Parameter servers and workers in processes of their own, beside TensorFlow's servers.

`python -m benchmarks.cluster` measures every row; `--rows one,growth` only some, `--quick` with
fewer and shorter rounds. The results go to `benchmarks/results/cluster.json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks import command
from benchmarks.results import Row
from benchmarks.trial import SUBJECT, Settings, Trial, durations, speed_row
from benchmarks.workloads.cluster import MEGA
from benchmarks.workloads.shared_copy import available_bytes

CONTENDERS = (SUBJECT, "tensorflow")
NULL_STEP = "benchmarks.workloads.cluster:null_step"
MILLI = 1e3
DEADLINE = 300.0
FLAT = 1.2
_ROOM = 6.0
"""How many times its size a table may take in all: two contenders, and initial values."""

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "scalar": ("a scalar read", {"kind": "scalar"}),
    "rows": ("32 rows of a table of 1 GB", {"kind": "rows", "megabytes": 1024.0}),
    "add": ("4 MB of the worker's added to a variable", {"kind": "add", "megabytes": 4.0}),
    "dense": ("100 MB read", {"kind": "dense", "megabytes": 100.0}),
}


def _row(
    settings: Settings,
    name: str,
    what: str,
    must_show: str | None,
    least: float,
    contenders: Sequence[str] = CONTENDERS,
    **arguments: Any,
) -> Row:
    with Trial(settings, contenders, DEADLINE) as trial:
        outcome = trial.measure(NULL_STEP, arguments)
    times = durations(outcome, MILLI)
    holds, notes = True, []
    if arguments["kind"] == "dense" and SUBJECT in times and SUBJECT in outcome.facts:
        copy = outcome.facts[SUBJECT]["copy_seconds"] * MILLI
        notes.append(f"one copy through shared memory takes {copy:.3g} ms")
        holds = times[SUBJECT].median <= 2 * copy or must_show is None or "copy" not in must_show
    return speed_row(
        name,
        what,
        "ms",
        outcome,
        times,
        must_show=must_show,
        at_least={"tensorflow": least} if must_show is not None else {},
        holds=holds,
        notes=notes,
    )


def one(settings: Settings) -> list[Row]:
    """One parameter server and one worker."""
    rows = []
    for kind, (what, arguments) in KINDS.items():
        least = 4.0 if kind == "dense" else 5.0
        must_show = f"at least {least:g} times TensorFlow"
        if kind == "dense":
            must_show += ", and half of what one copy through shared memory allows"
        rows.append(_row(settings, f"one_{kind}", f"1 + 1: {what}", must_show, least, **arguments))
    return rows


def growth(settings: Settings) -> list[Row]:
    """More parameter servers and workers; all workers run at once. The last row has the curve."""
    rows = []
    for kind, (what, arguments) in KINDS.items():
        if kind == "rows" and available_bytes() < _ROOM * arguments["megabytes"] * MEGA:
            what, arguments = "32 rows of a table of 256 MB", {**arguments, "megabytes": 256.0}
        curve = [
            _row(
                settings,
                f"{count}_{kind}",
                f"{count} + {count}: {what}, each worker",
                "at least 4 times TensorFlow" if count > 1 else None,
                4.0,
                servers=count,
                workers=count,
                **arguments,
            )
            for count in (1, 2, 4)
        ]
        rows += [*curve[:-1], replace(curve[-1], notes=(*curve[-1].notes, *_curve(curve)))]
    return rows


def _curve(rows: Sequence[Row]) -> list[str]:
    """How the time of a step grows with the cluster, for each contender."""
    return [
        f"{name}, from the smallest to the largest: "
        + ", ".join(f"{row.values[name].median:.3g} ms" for row in rows)
        for name in CONTENDERS
        if all(name in row.values for row in rows)
    ]


def tables(settings: Settings) -> list[Row]:
    """The size of a table does not matter when only some rows are read."""
    sizes = [size for size in (100, 1024, 4096) if available_bytes() > _ROOM * size * MEGA]
    rows = [
        _row(
            settings,
            f"table_{size}",
            f"1 + 1: 32 rows of a table of {size} MB",
            "flat within 20 %",
            0.0,
            kind="rows",
            megabytes=float(size),
        )
        for size in sizes
    ]
    times = [row.values[SUBJECT].median for row in rows if SUBJECT in row.values]
    if len(times) < 2:
        return [replace(row, passed=None) for row in rows]
    spread = max(times) / min(times)
    notes = (f"the slowest table takes {spread:.3g} times as long as the fastest",)
    return [
        replace(row, passed=bool(row.passed) and spread <= FLAT, notes=(*row.notes, *notes))
        for row in rows
    ]


def secure(settings: Settings) -> list[Row]:
    """Over TCP as between two machines, without TLS and with it: the cost."""
    return [
        _row(
            settings,
            f"{transport}_{kind}",
            f"1 + 1: {KINDS[kind][0]}, over {words}",
            None,
            0.0,
            (SUBJECT,),
            transport=transport,
            **KINDS[kind][1],
        )
        for kind in ("scalar", "dense")
        for transport, words in (("tcp", "TCP"), ("tls", "TCP with TLS"))
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


ROWS = {
    "one": one,
    "growth": growth,
    "tables": tables,
    "secure": secure,
    "many": many,
    "perceptron": perceptron,
}

if __name__ == "__main__":
    command.run(
        "cluster",
        "A cluster",
        ROWS,
        command.parser_for(ROWS, "Steps over parameter servers and workers."),
    )
