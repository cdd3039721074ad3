"""Large embeddings and softmaxes over many classes, beside TensorFlow, PyTorch, Ray and MXNet.

`python -m benchmarks.embeddings` measures every row; `--rows tables` only some, `--quick` with
fewer and shorter rounds. The results go to `benchmarks/results/embeddings.json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from benchmarks import command
from benchmarks.interleaving import Spread
from benchmarks.results import Row, now, samples_of
from benchmarks.trial import (
    SUBJECT,
    Outcome,
    Program,
    Settings,
    Trial,
    durations,
    speed_row,
    thread_notes,
)
from benchmarks.workloads import cluster_training_mxnet
from benchmarks.workloads.cluster_training import BATCH, WORKERS
from benchmarks.workloads.sampled_softmax import EXAMPLES, LENGTH

WORKLOADS = "benchmarks.workloads"
MILLI = 1e3
DEADLINE = 300.0
SHARDS = (1, 4)
MAPPED_SIZES = (100, 1_000, 4_000)
"""Megabytes of the table; the optimizer's slot takes as much again."""
FLAT = 1.2
SERVERS = (1, 2, 4)
MEGABYTES = (100, 4096)
ALIKE_IN_ORDER, ALIKE_IN_ANY_ORDER = 1e-4, 1e-2
"""How near losses of contenders are whose updates come in one order, and as they come."""


def tables(settings: Settings) -> list[Row]:
    """Training a table, whole and in shards."""
    rows = []
    for shards in SHARDS:
        programs: dict[str, Program] = {
            name: (
                f"{WORKLOADS}.sharded_embedding:training_step",
                {"frontend": settings.frontend(name), "shards": shards},
            )
            for name in (SUBJECT, "tensorflow")
        }
        programs["pytorch"] = (f"{WORKLOADS}.sharded_embedding_torch:training_step", {})
        with Trial(settings, list(programs), DEADLINE) as trial:
            outcome = trial.measure(programs, compared="losses")
        in_shards = f" in {shards} shards" if shards > 1 else ""
        rows.append(
            speed_row(
                f"table_{shards}",
                f"embedding of 1 M × 64{in_shards}, batch of 4,096 × 16 ids, Adagrad, one step",
                "ms",
                outcome,
                durations(outcome, MILLI),
                must_show="faster than TensorFlow and PyTorch",
                at_least={"tensorflow": 1.0, "pytorch": 1.0},
                notes=thread_notes(outcome),
            )
        )
    return rows


def _softmax(settings: Settings, sampled: bool, recurrent: bool) -> Outcome:
    with Trial(settings, (SUBJECT, "tensorflow"), DEADLINE) as trial:
        return trial.measure(
            f"{WORKLOADS}.sampled_softmax:training_step",
            {"sampled": sampled, "recurrent": recurrent},
            compared="losses",
        )


def language_model(settings: Settings) -> list[Row]:
    """The LSTM language model with both softmaxes, and the softmax alone."""
    rows = []
    # What compiles beside the first steps is to be there when they are measured.
    settings = replace(settings, warm_up=5 * settings.warm_up)
    for recurrent, name, what, least in (
        (False, "softmax", "softmax over 40,000 words alone", 20.0),
        (True, "language_model", "LSTM of 512 over 40,000 words", 4.0),
    ):
        full = _softmax(settings, False, recurrent)
        few = _softmax(settings, True, recurrent)
        for outcome, kind in ((full, "full"), (few, "sampled 512")):
            rows.append(
                speed_row(
                    f"{name}_{kind.partition(' ')[0]}",
                    f"{what}, {kind}, {EXAMPLES * LENGTH} words, one step",
                    "ms",
                    outcome,
                    durations(outcome, MILLI),
                    must_show="at least 1.5 times TensorFlow" if kind != "full" else "",
                    at_least={"tensorflow": 1.5} if kind != "full" else {},
                )
            )
        rows.append(_gain(name, what, full, few, least))
    return rows


def _gain(name: str, what: str, full: Outcome, few: Outcome, least: float) -> Row:
    """How many times faster the sampled softmax makes a step."""
    times = durations(full, 1.0), durations(few, 1.0)
    gain: dict[str, Spread] = {
        contender: times[0][contender].scaled(1 / times[1][contender].median)
        for contender in times[0]
        if contender in times[1]
    }
    return Row(
        name=f"{name}_gain",
        what=f"{what}, full over sampled",
        unit="times",
        values=gain,
        must_show=f"at least {least:g} times",
        passed=SUBJECT in gain and gain[SUBJECT].median >= least,
        notes=(*full.failures(), *few.failures()),
        measured=now(),
        samples=samples_of(few.measurements),
    )


def mapped(settings: Settings) -> list[Row]:
    """Training rows of a table in memory-mapped files: its size does not matter."""
    program = f"{WORKLOADS}.mapped_embedding:training_step"
    in_memory = _mapped_rows(settings, "memory", MAPPED_SIZES[:1], "", program, {"mapped": False})
    here = _mapped_rows(settings, "mapped", MAPPED_SIZES, "", program, {})
    tasks = {"kind": "mapped", "servers": 2, "workers": 2}
    on_tasks = _mapped_rows(
        settings, "mapped_tasks", MAPPED_SIZES, "2 + 2: ", f"{WORKLOADS}.cluster:null_step", tasks
    )
    return [*in_memory, *here, *on_tasks]


def _mapped_rows(
    settings: Settings,
    name: str,
    sizes: Sequence[int],
    tasks: str,
    program: str,
    arguments: dict[str, Any],
) -> list[Row]:
    """A row for each size, in megabytes; all but the first are compared with that."""
    rows: list[Row] = []
    smallest: Spread | None = None
    where = "in memory" if name == "memory" else "in mapped files"
    for size in sizes:
        with Trial(settings, (SUBJECT,), DEADLINE) as trial:
            outcome = trial.measure(program, {"megabytes": size, **arguments})
        found = durations(outcome, MILLI)
        if smallest is None:
            smallest = found.get(SUBJECT)
        is_flat = (
            smallest is not None
            and SUBJECT in found
            and found[SUBJECT].median <= FLAT * smallest.median
        )
        rows.append(
            speed_row(
                f"{name}_{size}",
                f"{tasks}1,000 rows of a table of {size:,} MB {where}, momentum, one step",
                "ms",
                outcome,
                found,
                must_show=None if name == "memory" else "flat within 20 % in the size",
                holds=is_flat,
            )
        )
    return rows


def sizes(settings: Settings) -> list[Row]:
    """A sparse step on tables of growing size, over more and more parameter servers."""
    rows = []
    for servers in SERVERS:
        found: dict[int, Outcome] = {}
        for megabytes in MEGABYTES:
            with Trial(settings, (SUBJECT, "tensorflow"), DEADLINE) as trial:
                outcome = found[megabytes] = trial.measure(
                    f"{WORKLOADS}.cluster:null_step",
                    {"kind": "rows", "servers": servers, "megabytes": float(megabytes)},
                )
            rows.append(
                speed_row(
                    f"sparse_{servers}_{megabytes}",
                    f"{servers} + 1: 32 rows of each shard of a table of {megabytes:,} MB",
                    "ms",
                    outcome,
                    durations(outcome, MILLI),
                    must_show="at least 5 times TensorFlow",
                    at_least={"tensorflow": 5.0},
                )
            )
        rows.append(_growth(servers, found))
    return rows


def _growth(servers: int, found: dict[int, Outcome]) -> Row:
    """How much longer the slowest size takes than the smallest."""
    times = {megabytes: durations(outcome, 1.0) for megabytes, outcome in found.items()}
    smallest = times[MEGABYTES[0]]
    growth = {
        name: Spread.of([max(each[name].median for each in times.values()) / start.median])
        for name, start in smallest.items()
        if all(name in each for each in times.values())
    }
    sizes_named = " to ".join(f"{megabytes:,}" for megabytes in (MEGABYTES[0], MEGABYTES[-1]))
    return Row(
        name=f"sparse_{servers}_growth",
        what=f"{servers} + 1: the same, the slowest of {sizes_named} MB over {MEGABYTES[0]} MB",
        unit="times",
        values=growth,
        must_show="flat within 20 %",
        passed=SUBJECT in growth and growth[SUBJECT].median <= FLAT,
        measured=now(),
    )


def workers(settings: Settings) -> list[Row]:
    """Asynchronous and synchronous training by three workers on one parameter server."""
    rows = []
    # Four processes on the cores of one compile what is worth it beside their first steps.
    settings = replace(settings, warm_up=10 * settings.warm_up)
    by_hand: dict[str, str] = {}  # programs of their own
    notes = []
    if find_spec("ray") is not None:
        by_hand["ray"] = f"{WORKLOADS}.cluster_training_ray:training"
    else:
        notes.append("Ray is not installed")
    if cluster_training_mxnet.interpreter() is not None:
        by_hand["mxnet"] = f"{WORKLOADS}.cluster_training_mxnet:training"
    else:
        notes.append(f"{cluster_training_mxnet.VARIABLE} names no interpreter with MXNet 1.9.1")
    peers = ["tensorflow", *by_hand]
    for model, what in (
        ("mlp", "perceptron 784-128-64-10, batches of 100"),
        ("embedding", "embedding of 200,000 × 32, batches of 256 × 8 ids"),
    ):
        for synchronous in (False, True):
            arguments = {"model": model, "synchronous": synchronous}
            programs: dict[str, Program] = {
                name: (
                    f"{WORKLOADS}.cluster_training:training",
                    {"frontend": settings.frontend(name), **arguments},
                )
                for name in (SUBJECT, "tensorflow")
            }
            programs |= {name: (path, arguments) for name, path in by_hand.items()}
            with Trial(settings, list(programs), DEADLINE) as trial:
                outcome = trial.measure(
                    programs,
                    compared="losses",
                    agreement=ALIKE_IN_ORDER if synchronous else ALIKE_IN_ANY_ORDER,
                )
            kind = "synchronous" if synchronous else "asynchronous"
            rates = {
                name: measurement.wall.rate(WORKERS * BATCH[model])
                for name, measurement in outcome.measurements.items()
                if measurement.samples
            }
            rows.append(
                speed_row(
                    f"workers_{model}_{kind}",
                    f"1 + {WORKERS}: {what}, {kind}",
                    "examples/s",
                    outcome,
                    rates,
                    must_show="ahead of TensorFlow, of actors of Ray and of MXNet",
                    at_least=dict.fromkeys(peers, 1.0),
                    notes=notes,
                )
            )
    return rows


def threads(settings: Settings) -> list[Row]:
    """One table that several threads of one process train and look rows up in."""
    rows = []
    for trainers, readers, what in (
        (3, 0, "3 threads"),
        (2, 1, "2 threads beside a reader"),
    ):
        with Trial(settings, (SUBJECT, "tensorflow"), DEADLINE) as trial:
            outcome = trial.measure(
                f"{WORKLOADS}.shared_table:training", {"trainers": trainers, "readers": readers}
            )
        rates = {
            name: measurement.wall.rate(trainers * BATCH["embedding"])
            for name, measurement in outcome.measurements.items()
            if measurement.samples
        }
        rows.append(
            speed_row(
                f"threads_{trainers}_{readers}",
                f"embedding of 200,000 × 32, batches of 256 × 8 ids, trained by {what}",
                "examples/s",
                outcome,
                rates,
                must_show="ahead of TensorFlow",
                at_least={"tensorflow": 1.0},
            )
        )
    return rows


ROWS = {
    "tables": tables,
    "mapped": mapped,
    "language_model": language_model,
    "sizes": sizes,
    "workers": workers,
    "threads": threads,
}

if __name__ == "__main__":
    command.run(
        "embeddings",
        "Large embeddings",
        ROWS,
        command.parser_for(ROWS, "Large embeddings and softmaxes over many classes."),
    )
