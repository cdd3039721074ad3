"""`python -m benchmarks.evaluation`: measure, keep the results, write the page.

`--quick` tries it out in two minutes and leaves the page alone; `--parts figure6,recovery` measures
only some, and keeps the others; `--page` measures nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.evaluation import beyond, page, recovery
from benchmarks.evaluation.experiments import FIGURES, QUICK, Fleets, Plan
from benchmarks.evaluation.fleet import TaskFailed

BEYOND = ("recovery", "staleness", "elasticity")
PARTS = (*FIGURES, *BEYOND)
TRIES = 3
"""How often processes are started before a failure of theirs ends the run."""


def _load(name: str) -> dict[str, Any]:
    path = results.path_of(name)
    return json.loads(path.read_text()) if path.exists() else {"parts": {}, "notes": []}


def _save(name: str, content: dict[str, Any]) -> None:
    results.path_of(name).write_text(json.dumps(content) + "\n")


def _beyond(part: str, plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    if part == "staleness":
        return beyond.staleness(plan.staleness_seconds, say)
    if part == "elasticity":
        return beyond.elasticity(plan.elastic_seconds, say)
    with tempfile.TemporaryDirectory(prefix="evaluation-") as folder:
        return recovery.measure(Path(folder), plan.kills)


def measure(parts: list[str], plan: Plan, name: str, peer: bool, most: int) -> dict[str, Any]:
    """Measures parts, and keeps each at once: a later one may be interrupted."""
    about = {"machine": results.describe_machine(), "measured": results.now()}
    started = time.perf_counter()

    def say(line: str) -> None:
        print(f"{time.perf_counter() - started:6.0f} s {line}", flush=True)

    def keep(found: dict[str, Any], **more: Any) -> None:
        kept = _load(name)
        kept |= {**about, **more, "parts": {**kept["parts"], **found}}
        _save(name, kept)
        say(f"{', '.join(found)} is done")

    figures = [part for part in parts if part in FIGURES]
    tries = TRIES
    while figures:
        with Fleets(plan, say, peer, most) as fleets:
            say(f"{fleets.most_workers} workers wait")
            try:
                while figures:
                    keep({figures[0]: FIGURES[figures[0]](plan, fleets)}, notes=fleets.notes)
                    figures.pop(0)
            except TaskFailed as failure:
                tries -= 1
                if not tries:
                    raise
                say(f"{figures[0]} begins again, with new processes: {failure}")
    for part in (part for part in parts if part in BEYOND):
        keep({part: _beyond(part, plan, say)})
    return _load(name)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="The paper's evaluation, again.")
    parser.add_argument("--parts", help=f"only these, separated by commas: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="small and short; no page")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    parser.add_argument("--no-peer", action="store_true", help="without TensorFlow")
    parser.add_argument("--most-workers", type=int, default=16, help="at most so many workers")
    options = parser.parse_args()
    parts = options.parts.split(",") if options.parts else list(PARTS)
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no parts named {', '.join(unknown)}; there are {', '.join(PARTS)}")
    name = "evaluation-trial" if options.quick else "evaluation"
    if not options.page:
        plan = QUICK if options.quick else Plan()
        content = measure(parts, plan, name, not options.no_peer, options.most_workers)
        print(f"kept in {results.path_of(name)}")
    else:
        content = _load(name)
    if options.page or not options.quick:
        page.write(content)
        print(f"written: {page.PAGE}")


if __name__ == "__main__":
    main()
