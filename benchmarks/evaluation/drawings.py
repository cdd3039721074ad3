"""The pictures of the evaluation: which results become which lines (pure)."""

from __future__ import annotations

from typing import Any

from benchmarks.evaluation.pictures import Axis, Series, chart
from benchmarks.evaluation.predictions import (
    WORDS_A_STEP,
    Evaluation,
    null_name,
    observation,
    softmax_name,
)
from benchmarks.tables import display_name
from benchmarks.workloads.evaluated_programs import BATCH

MILLI = 1e3
WORKERS = Axis("workers", logarithmic=True)
RATE_SECONDS = 1.0
"""Over how long the rate of an elastic job is averaged."""


def pictures(evaluation: Evaluation) -> dict[str, str]:
    """By the names of their files, the pictures of what was measured."""
    made: dict[str, str] = {}
    for part, draw in DRAWN.items():
        if part in evaluation.parts:
            made.update(draw(evaluation))
    return made


def _figure6(evaluation: Evaluation) -> dict[str, str]:
    series, cluster = [], []
    for number, curve in enumerate(evaluation.parts["figure6"]["curves"]):
        for contender, observed in curve["observed"].items():
            points = [(o.workers, o.step_time * MILLI) for o in map(observation, observed)]
            name = f"{null_name(curve)}, {display_name(contender)}"
            series.append(Series(name, points, number, dashed=contender != "runnel"))
    for number, (name, far) in enumerate(evaluation.null_cluster.items()):
        cluster.append(Series(name, [(n, s * MILLI) for n, s in far], number))
    time = Axis("time of a step, ms", logarithmic=True)
    return {
        "figure6": chart("Null steps, measured", WORKERS, time, series),
        "figure6-cluster": chart("Null steps, 16 servers, simulated", WORKERS, time, cluster),
    }


def _figure7(evaluation: Evaluation) -> dict[str, str]:
    rates, times = [], []
    for number, curve in enumerate(evaluation.parts["figure7"]["curves"]):
        kind = f"{'sync' if curve['synchronous'] else 'async'}"
        kind += ", accelerator" if curve["accelerator"] else ", CPU"
        for contender, observed in curve["observed"].items():
            seen = [observation(stored) for stored in observed]
            name, dashed = f"{kind}, {display_name(contender)}", contender != "runnel"
            images = [(o.workers, o.rate * BATCH) for o in seen]
            rates.append(Series(name, images, number, dashed))
            median = [(o.workers, o.durations[1] * MILLI) for o in seen]
            times.append(Series(name, median, number, dashed))
    rate = Axis("images a second", logarithmic=True)
    time = Axis("median time of a step, ms", logarithmic=True)
    cluster = evaluation.training_cluster
    far_rates = [
        Series(name.split(",")[0], [(n, r * BATCH) for n, r, _ in points], number)
        for number, (name, points) in enumerate(cluster.items())
    ]
    far_times = [
        Series(name.split(",")[0], [(n, t * MILLI) for n, _, t in points], number)
        for number, (name, points) in enumerate(cluster.items())
    ]
    short = Axis("median time of a step, ms", least=0.0)
    return {
        "figure7-throughput": chart("Throughput, measured", WORKERS, rate, rates),
        "figure7-step-time": chart("Time of a step, measured", WORKERS, time, times),
        "figure7-cluster": chart("Throughput, 16 servers, simulated", WORKERS, rate, far_rates),
        "figure7-cluster-step-time": chart(
            "Time of a step, 16 servers, simulated", WORKERS, short, far_times
        ),
    }


def speedups(replicas: int, times: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The normalised speed-up for each number of backups: t(0) / t(b) · n / (n + b)."""
    alone = times[0][1]
    return [(b, alone / time * replicas / (replicas + b)) for b, time in times]


def _figure8(evaluation: Evaluation) -> dict[str, str]:
    part = evaluation.parts["figure8"]
    replicas = part["replicas"]
    measured = [(o["backups"], o["update_time"]) for o in part["observed"]]
    curves = {f"{replicas} workers, measured": (replicas, measured)}
    for count, far in evaluation.backup_cluster.items():
        curves[f"{count} workers, simulated"] = (count, [(b, t) for b, t, _ in far])
    times, gains = [], []
    for number, (name, (count, points)) in enumerate(curves.items()):
        in_milli = [(b, t * MILLI) for b, t in points]
        times.append(Series(name, in_milli, number, dashed="simulated" in name))
        gains.append(Series(name, speedups(count, points), number, dashed="simulated" in name))
    backups = Axis("backup workers", least=0.0)
    return {
        "figure8": chart(
            "Time of a step", backups, Axis("median time of a step, ms", least=0.0), times
        ),
        "figure8-speedup": chart(
            "Speed-up for the machines used", backups, Axis("t(0)/t(b) · n/(n + b)"), gains
        ),
    }


def _figure9(evaluation: Evaluation) -> dict[str, str]:
    servers = Axis("parameter servers", logarithmic=True)
    words = Axis("words a second", logarithmic=True)
    series = [
        Series(
            f"{softmax_name(curve['sampled'])}, {curve['workers']} worker(s)",
            [(o["servers"], observation(o).rate * WORDS_A_STEP) for o in curve["observed"]],
            number,
        )
        for number, curve in enumerate(evaluation.parts["figure9"]["curves"])
    ]
    cluster = [
        Series(f"{softmax_name(sampled)}, {workers} workers", points, number)
        for number, ((sampled, workers), points) in enumerate(evaluation.language_cluster.items())
    ]
    return {
        "figure9": chart("Language model, measured", servers, words, series),
        "figure9-cluster": chart("Language model, simulated", servers, words, cluster),
    }


def bound_name(bound: float | None) -> str:
    """The name of a bound on staleness."""
    return "s = ∞" if bound is None else f"s = {bound:g}"


def _staleness(evaluation: Evaluation) -> dict[str, str]:
    by_time, by_updates = [], []
    for number, curve in enumerate(evaluation.parts["staleness"]["curves"]):
        name, points = bound_name(curve["bound"]), curve["points"]
        by_time.append(Series(name, [(t, loss) for t, _, loss in points], number, marks=False))
        by_updates.append(Series(name, [(u, loss) for _, u, loss in points], number, marks=False))
    loss = Axis("loss", logarithmic=True)
    return {
        "staleness-time": chart("Loss against time", Axis("seconds", least=0), loss, by_time),
        "staleness-updates": chart(
            "Loss against updates", Axis("updates", least=0), loss, by_updates
        ),
    }


def rates(points: list[Any]) -> list[tuple[float, float]]:
    """Updates a second over time, each averaged over the second before.

    >>> rates([(0.0, 0), (0.5, 5), (1.0, 10), (2.0, 40)])
    [(1.0, 10.0), (2.0, 30.0)]
    """
    found, first = [], 0
    for moment, step in points:
        while first + 1 < len(points) and points[first + 1][0] <= moment - RATE_SECONDS:
            first += 1
        begin, before = points[first]
        if moment - begin >= RATE_SECONDS:
            found.append((moment, (step - before) / (moment - begin)))
    return found


def _elasticity(evaluation: Evaluation) -> dict[str, str]:
    series = [
        Series(run["coordination"], rates(run["points"]), number, marks=False)
        for number, run in enumerate(evaluation.parts["elasticity"]["runs"])
    ]
    updates = Axis("updates a second", least=0)
    return {
        "elasticity": chart(
            "A worker joins, another is killed", Axis("seconds", least=0), updates, series
        )
    }


DRAWN = {
    "figure6": _figure6,
    "figure7": _figure7,
    "figure8": _figure8,
    "figure9": _figure9,
    "staleness": _staleness,
    "elasticity": _elasticity,
}
