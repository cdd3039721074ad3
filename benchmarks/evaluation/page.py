"""Writes the evaluation's page: tables between its markers, pictures beside it."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.evaluation.drawings import bound_name, pictures, rates, speedups
from benchmarks.evaluation.predictions import (
    CLUSTER_SERVERS,
    SIZES,
    WORDS_A_STEP,
    Evaluation,
    null_name,
    observation,
    softmax_name,
    training_name,
)
from benchmarks.evaluation.recovery import VICTIMS
from benchmarks.interleaving import REPOSITORY
from benchmarks.tables import display_name, number
from benchmarks.trial import SUBJECT
from benchmarks.workloads.evaluated_programs import BATCH

PAGE = REPOSITORY / "docs" / "evaluation.md"
FIGURES = "figures"
MARKED = re.compile(
    r"(<!-- evaluation:(?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- /evaluation -->)", re.DOTALL
)
MILLI = 1e3
BUSY_SHARE = 0.15
"""From which share of the machine on others are said to have disturbed."""
BUSY = (
    "**The machine was busy**: differences between two rows may be those between two moments. "
    "A run on a quiet machine replaces these figures."
)
LOSS = 0.3
"""The loss whose time is told for each bound on staleness."""


def write(content: dict[str, Any], page: Path = PAGE, sizes: Sequence[int] = SIZES) -> None:
    """Replaces what stands between the page's markers, and the pictures.

    ``sizes`` are the numbers of workers of the simulated cluster.
    """
    evaluation = Evaluation(content, sizes)
    drawn = pictures(evaluation)
    folder = page.parent / FIGURES
    folder.mkdir(exist_ok=True)
    for name, picture in drawn.items():
        (folder / f"{name}.svg").write_text(picture)
    page.write_text(filled(page.read_text(), evaluation))


def filled(document: str, evaluation: Evaluation) -> str:
    """The document with every marked part made anew; a part without results stays as it is."""
    parts = {*evaluation.parts, "machine"}
    if {"figure6", "figure7"} <= parts:  # the simulation has its costs from these
        parts.add("predictions")

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in BODIES:
            raise ValueError(f"the page has a part {name!r}; there are {', '.join(BODIES)}")
        if name not in parts:
            return match[0]
        return f"{match[1]}{BODIES[name](evaluation)}\n{match[4]}"

    return MARKED.sub(replace, document)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, whose numbers stand to the right."""
    lines = ["| " + " | ".join(headings) + " |", "|---|" + "--:|" * (len(headings) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _picture(name: str, what: str) -> str:
    return f"![{what}]({FIGURES}/{name}.svg)"


def _milli(seconds: float) -> str:
    return number(seconds * MILLI)


def _machine(evaluation: Evaluation) -> str:
    machine = evaluation.machine
    others = [stored["others_cpu"] for stored in _observations(evaluation.parts)]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    lines = [
        f"Measured {evaluation.content['measured'][:10]} on {machine['cores']} cores of "
        f"{machine['cpu']}, {machine['memory_gib']:g} GiB of memory, {machine['system']}, Python "
        f"{machine['python']}; {versions}."
    ]
    if others:
        lines.append(
            f"Other programs took {number(statistics.median(others))} of the {machine['cores']} "
            f"cores meanwhile (median; at most {number(max(others))})."
        )
        if statistics.median(others) > BUSY_SHARE * machine["cores"]:
            lines.append(BUSY)
    lines += [f"{note}." for note in evaluation.content.get("notes", ())]
    return "\n".join(lines)


def _observations(stored: Any) -> list[dict[str, Any]]:
    """All that was observed, wherever it stands."""
    if isinstance(stored, list):
        return [one for item in stored for one in _observations(item)]
    if not isinstance(stored, dict):
        return []
    if "others_cpu" in stored:
        return [stored]
    return [one for item in stored.values() for one in _observations(item)]


def _by_workers(
    name: str, observed: list[dict[str, Any]], sizes: list[int], cell: Any
) -> list[str]:
    at = {stored["workers"]: observation(stored) for stored in observed}
    return [name, *(cell(at[size]) if size in at else "–" for size in sizes)]


def _sizes(curves: list[dict[str, Any]]) -> list[int]:
    return sorted({o["workers"] for curve in curves for o in curve["observed"][SUBJECT]})


def _figure6(evaluation: Evaluation) -> str:
    part = evaluation.parts["figure6"]
    sizes = _sizes(part["curves"])
    rows = [
        _by_workers(
            f"{null_name(curve)}, {display_name(contender)}",
            observed,
            sizes,
            lambda seen: _milli(seen.step_time),
        )
        for curve in part["curves"]
        for contender, observed in curve["observed"].items()
    ]
    cluster = [
        [name, *(_milli(seconds) for _, seconds in points)]
        for name, points in evaluation.null_cluster.items()
    ]
    step, byte = evaluation.server_times()
    return "\n\n".join(
        [
            f"Milliseconds of a step, {part['servers']} parameter servers, against workers:",
            table(["measured", *map(str, sizes)], rows),
            _picture("figure6", "Null steps against workers, measured"),
            f"Simulated, {CLUSTER_SERVERS} parameter servers, each task on a machine of its own:",
            table(["simulated", *map(str, evaluation.sizes)], cluster),
            _picture("figure6-cluster", "Null steps against workers, simulated"),
            f"A parameter server takes {number(step * 1e6)} µs of CPU for the step of one worker "
            f"and {number(byte * 2**20 * 1e6)} µs for each megabyte of it.",
        ]
    )


def _figure7(evaluation: Evaluation) -> str:
    part = evaluation.parts["figure7"]
    sizes = _sizes(part["curves"])
    rates_of, times = [], []
    for curve in part["curves"]:
        for contender, observed in curve["observed"].items():
            name = f"{training_name(curve)}, {display_name(contender)}"
            rates_of.append(_by_workers(name, observed, sizes, lambda o: number(o.rate * BATCH)))
            times.append(
                _by_workers(
                    name,
                    observed,
                    sizes,
                    lambda o: f"{_milli(o.durations[1])} ({_milli(o.durations[3])})",
                )
            )
    cluster = []
    for name, points in evaluation.training_cluster.items():
        kind = name.split(",")[0]
        cluster.append([f"{kind}, images a second", *(number(r * BATCH) for _, r, _ in points)])
        cluster.append([f"{kind}, median step, ms", *(_milli(t) for _, _, t in points)])
    return "\n\n".join(
        [
            f"Images a second, {part['servers']} parameter servers, against workers:",
            table(["measured", *map(str, sizes)], rates_of),
            _picture("figure7-throughput", "Throughput against workers, measured"),
            "Milliseconds of a worker's step, median (ninth decile):",
            table(["measured", *map(str, sizes)], times),
            _picture("figure7-step-time", "Time of a step against workers, measured"),
            f"Simulated, {CLUSTER_SERVERS} parameter servers, each task on a machine of its own:",
            table(["simulated", *map(str, evaluation.sizes)], cluster),
            _picture("figure7-cluster", "Throughput against workers, simulated"),
            _picture("figure7-cluster-step-time", "Time of a step against workers, simulated"),
        ]
    )


def _figure8(evaluation: Evaluation) -> str:
    part = evaluation.parts["figure8"]
    replicas = part["replicas"]
    curves = {
        f"{replicas} workers, measured": (
            replicas,
            [(o["backups"], o["update_time"], 1 / o["updates"]) for o in part["observed"]],
        )
    }
    for count, simulated in evaluation.backup_cluster.items():
        curves[f"{count} workers, simulated"] = (count, simulated)
    rows = []
    for name, (count, points) in curves.items():
        gains = speedups(count, [(b, median) for b, median, _ in points])
        for (b, median, mean), (_, gain) in zip(points, gains, strict=True):
            rows.append([name, str(b), _milli(median), _milli(mean), f"{gain:.3f}"])
    headings = ["", "backups", "median step, ms", "mean step, ms", "normalised speed-up"]
    return "\n\n".join(
        [
            table(headings, rows),
            _picture("figure8", "Time of a step against backup workers"),
            _picture("figure8-speedup", "Normalised speed-up against backup workers"),
        ]
    )


def _figure9(evaluation: Evaluation) -> str:
    curves = evaluation.parts["figure9"]["curves"]
    servers = sorted({stored["servers"] for curve in curves for stored in curve["observed"]})
    rows = [
        [
            f"{softmax_name(curve['sampled'])} softmax, {curve['workers']} worker(s)",
            *(number(observation(o).rate * WORDS_A_STEP) for o in curve["observed"]),
        ]
        for curve in curves
    ]
    cluster = evaluation.language_cluster
    simulated = [
        [f"{softmax_name(sampled)} softmax, {workers} workers", *(number(w) for _, w in points)]
        for (sampled, workers), points in cluster.items()
    ]
    counts = [str(count) for count, _ in next(iter(cluster.values()))]
    return "\n\n".join(
        [
            "Words a second, against parameter servers:",
            table(["measured", *map(str, servers)], rows),
            _picture("figure9", "Words a second against parameter servers, measured"),
            "Simulated, each task on a machine of its own:",
            table(["simulated", *counts], simulated),
            _picture("figure9-cluster", "Words a second against parameter servers, simulated"),
        ]
    )


def _predictions(evaluation: Evaluation) -> str:
    found = evaluation.predictions()
    rows = [
        [
            one.what,
            one.size,
            _milli(one.measured),
            _milli(one.simulated),
            f"{one.error:+.0%}" + (" (calibrates)" if one.calibrating else ""),
        ]
        for one in found
    ]
    errors = sorted(abs(one.error) for one in found if not one.calibrating)
    lines = [table(["", "size", "measured, ms", "simulated, ms", "error"], rows)]
    if errors:
        within = sum(error <= 0.25 for error in errors)
        lines.append(
            f"Of the {len(errors)} sizes that did not calibrate it, the simulation is off by "
            f"{statistics.median(errors):.0%} in the median and {errors[-1]:.0%} at most; "
            f"{within} are within 25 %."
        )
    return "\n\n".join(lines)


def _recovery(evaluation: Evaluation) -> str:
    kills = evaluation.parts["recovery"]["kills"]
    rows = []
    for victim, what in VICTIMS.items():
        some = [kill for kill in kills if kill["victim"] == victim]
        if some:
            rows.append(
                [
                    f"{what} ({victim})",
                    str(len(some)),
                    number(statistics.median(kill["standstill"] for kill in some)),
                    number(statistics.median(kill["back"] for kill in some)),
                    number(statistics.median(kill["lost"] for kill in some)),
                ]
            )
    headings = ["killed", "times", "nobody made a step for, s", "all train again after, s"]
    return table([*headings, "steps lost"], rows)


def _staleness(evaluation: Evaluation) -> str:
    rows = []
    for curve in evaluation.parts["staleness"]["curves"]:
        points = curve["points"]
        low = next((point for point in points if point[2] <= LOSS), None)
        rows.append(
            [
                bound_name(curve["bound"]),
                number(points[-1][1] / points[-1][0]),
                f"{low[0]:.1f}" if low else "–",
                str(low[1]) if low else "–",
                f"{points[-1][2]:.3f}",
            ]
        )
    headings = ["", "updates a second", f"seconds to a loss of {LOSS:g}", "updates to it"]
    return "\n\n".join(
        [
            table([*headings, "loss at the end"], rows),
            _picture("staleness-time", "Loss against time, by the bound on staleness"),
            _picture("staleness-updates", "Loss against updates, by the bound on staleness"),
        ]
    )


def _elasticity(evaluation: Evaluation) -> str:
    lines = [_picture("elasticity", "Updates a second while workers come and go")]
    for run in evaluation.parts["elasticity"]["runs"]:
        told = "; ".join(f"{what} at {moment:.1f} s" for moment, what in run["events"])
        moments = [moment for moment, _ in run["events"]]
        ends = [0.0, *moments, run["points"][-1][0]]
        spans = ", ".join(
            f"{number(rate)}"
            for begin, end in zip(ends, ends[1:])
            if (rate := _mean_rate(run["points"], begin, end)) is not None
        )
        best = max((rate for _, rate in rates(run["points"])), default=0.0)
        lines.append(
            f"- {run['coordination']}: {told}. Updates a second before, between and after these: "
            f"{spans}; at most {number(best)}."
        )
    return "\n".join([lines[0], "", *lines[1:]])


def _mean_rate(points: list[Any], begin: float, end: float) -> float | None:
    inside = [point for point in points if begin <= point[0] <= end]
    if len(inside) < 2 or inside[-1][0] == inside[0][0]:
        return None
    return float((inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0]))


BODIES = {
    "machine": _machine,
    "figure6": _figure6,
    "figure7": _figure7,
    "figure8": _figure8,
    "figure9": _figure9,
    "predictions": _predictions,
    "recovery": _recovery,
    "staleness": _staleness,
    "elasticity": _elasticity,
}
