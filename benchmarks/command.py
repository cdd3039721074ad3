"""The command line of a benchmark that is a set of named rows."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rich.console import Console

from benchmarks import results
from benchmarks.results import Row
from benchmarks.tables import print_table
from benchmarks.trial import SUBJECT, Settings

Rows = Mapping[str, Callable[[Settings], list[Row]]]
"""By name: what measures some rows of the table."""

QUICK: dict[str, Any] = {"rounds": 3, "seconds": 0.1, "warm_up": 0.5, "steady_steps": 50_000}


def parser_for(rows: Rows, description: str) -> argparse.ArgumentParser:
    """The options that every such benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", help=f"only these, separated by commas: {', '.join(rows)}")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    return parser


def settings_from(options: argparse.Namespace, **shared: Any) -> Settings:
    """How thoroughly the options ask to measure."""
    return Settings(**shared, **QUICK) if options.quick else Settings(**shared)


def sustained(options: argparse.Namespace) -> Settings:
    """Settings for pipelines that work ahead: of a long round that is a small part.

    While the others are measured, such a pipeline fills its buffers (TensorFlow's tunes their
    sizes): what it has in stock at the start of a round must not count.
    """
    settings = settings_from(options)
    return replace(settings, seconds=10 * settings.seconds, rounds=min(settings.rounds, 5))


def run(
    benchmark: str,
    title: str,
    rows: Rows,
    parser: argparse.ArgumentParser,
    settings_of: Callable[[argparse.Namespace], Settings] = settings_from,
) -> None:
    """Measure, print the table, keep the results; the exit status says whether all rows passed."""
    options = parser.parse_args()
    names = options.rows.split(",") if options.rows else list(rows)
    if unknown := [name for name in names if name not in rows]:
        parser.error(f"no rows named {', '.join(unknown)}; there are {', '.join(rows)}")
    settings = settings_of(options)
    # Only a full run of runnel itself may become the table that people read.
    if options.quick or settings.stand_in != SUBJECT:
        benchmark += "-trial"
    console = Console(width=None if sys.stdout.isatty() else 160)
    machine = results.describe_machine()
    found: list[Row] = []
    for name in names:
        started = time.perf_counter()
        with console.status(name):
            measured = rows[name](settings)
        console.print(f"{name}: {time.perf_counter() - started:.0f} s")
        results.save(benchmark, machine, measured)  # At once: a later row may be interrupted.
        found += measured
    print_table(console, title, found)
    console.print(f"kept in {results.path_of(benchmark)}")
    sys.exit(any(row.passed is False for row in found))
