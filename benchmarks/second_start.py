"""The second start of a program: what the first has compiled is loaded.

`python -m benchmarks.second_start` measures every row; `--rows mlp` only some, `--quick` with fewer
rounds. The results go to `benchmarks/results/second_start.json`.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import command
from benchmarks.interleaving import REPOSITORY, Spread, environment
from benchmarks.results import Row, now
from benchmarks.trial import SUBJECT, Settings
from benchmarks.workloads.starts import MODELS
from runnel.native import onednn
from runnel.native.build import kept_libraries

STEPS = 400
MILLI = 1e3
Facts = dict[str, Any]
MODES = {"default": "as it comes", "compiled": "compiled from the first step on"}


def started(model: str, mode: str, folder: str) -> Facts:
    """What a new process finds that keeps what it compiles in ``folder``."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.workloads.starts", model, str(STEPS), mode],
        env={**environment(), "RUNNEL_CACHE_DIR": folder, "RUNNEL_CACHE_SIZE": "1G"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return json.loads(done.stdout)


def row_for(model: str, mode: str, rounds: int) -> Row:
    """The first step of a second start beside that of a first."""
    firsts, seconds = [], []
    onednn.load()  # which builds its library, once for a user
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for library in kept_libraries():
                Path(folder, library.name).symlink_to(library)
            firsts.append(started(model, mode, folder))
            seconds.append(started(model, mode, folder))

    def of(starts: list[Facts], fact: str) -> float:
        return median(start[fact] for start in starts)

    compiled = sum(start["compiled"] for start in seconds)
    same = all(
        math.isclose(a, b, rel_tol=1e-3)
        for start in (*firsts, *seconds)
        for a, b in zip(start["losses"], firsts[0]["losses"], strict=True)
    )
    allowed = 2 * of(seconds, "warm") + of(seconds, "making")
    return Row(
        name=f"{model}_{mode}",
        what=f"{MODELS[model][0]}, {MODES[mode]}: first step of the second start",
        unit="ms",
        values={SUBJECT: Spread.of([start["first"] for start in seconds]).scaled(MILLI)},
        faster_than={
            "the first start": Spread.of(
                [a["first"] / b["first"] for a, b in zip(firsts, seconds, strict=True)]
            )
        },
        must_show="no compilation; under 2 warm steps and loading",
        passed=compiled == 0 and same and of(seconds, "first") <= allowed,
        notes=(
            f"{compiled} compilations in the second start, "
            f"{sum(start['loaded'] for start in seconds)} loaded; a warm step takes "
            f"{of(seconds, 'warm') * MILLI:.3g} ms, loading {of(seconds, 'making') * MILLI:.3g} ms "
            f"(compiling {of(firsts, 'making') * MILLI:.3g}), "
            f"tracing {of(seconds, 'tracing') * MILLI:.3g} ms",
            f"longest of the first {STEPS} steps: {of(firsts, 'longest') * MILLI:.3g} ms in the "
            f"first start, {of(seconds, 'longest') * MILLI:.3g} ms in the second",
            *(() if same else ("the losses differ",)),
        ),
        measured=now(),
    )


def rows_of(model: str) -> Callable[[Settings], list[Row]]:
    """What measures one model, in both modes."""

    def measure(settings: Settings) -> list[Row]:
        return [row_for(model, mode, max(1, settings.rounds // 3)) for mode in MODES]

    return measure


ROWS = {model: rows_of(model) for model in MODELS}


if __name__ == "__main__":
    parser = command.parser_for(ROWS, "Measure the second start of programs.")
    command.run("second_start", "the second start", ROWS, parser)
