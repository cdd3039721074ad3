"""Write the measured tables into the documents, between their markers.

`python -m benchmarks.report` replaces what stands between `<!-- benchmark:NAME -->` and
`<!-- /benchmark -->` by the table of `benchmarks/results/NAME.json`; with `--check` it only says
whether that would change anything.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import results, tables
from benchmarks.interleaving import REPOSITORY

DOCUMENTS = {"README.md": "short", "docs/benchmarks.md": "full"}
"""Where tables stand. The short form has only the rows that must show something, and no notes."""
MARKED = re.compile(
    r"(<!-- benchmark:(?P<name>[\w-]+) -->\n)(?P<table>.*?)(<!-- /benchmark -->)", re.DOTALL
)


def machine_line(machine: dict[str, Any], rows: Sequence[results.Row]) -> str:
    """One sentence on what the table holds for."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    days = sorted({row.measured[:10] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    place = f"one {machine['accelerator']} beside " if "accelerator" in machine else ""
    return (
        f"Measured {when} on {place}{machine['cores']} cores of {machine['cpu']}, "
        f"{machine['system']}, "
        f"Python {machine['python']}; {versions}. Values are medians; in brackets, quartiles."
    )


def fill(document: str, form: str) -> str:
    """The document with every marked table made anew; a name without results keeps its table."""

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if not results.path_of(name).exists():
            return match[0]
        machine, rows = results.load(name)
        if form == "short":
            rows = [row for row in rows if row.must_show is not None]
        table = tables.markdown(rows, notes=form == "full")
        body = f"{table}\n\n{machine_line(machine, rows)}\n"
        return f"{match[1]}{body}{match[4]}"

    return MARKED.sub(replace, document)


def main() -> None:
    """Rewrite the documents, or check that they need no rewriting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if outdated")
    options = parser.parse_args()
    outdated = []
    for name, form in DOCUMENTS.items():
        path = Path(REPOSITORY, name)
        if not path.exists():
            continue
        before = path.read_text()
        after = fill(before, form)
        if after == before:
            continue
        outdated.append(name)
        if not options.check:
            path.write_text(after)
    if options.check and outdated:
        sys.exit(f"outdated: {', '.join(outdated)}; run python -m benchmarks.report")
    print(f"rewritten: {', '.join(outdated)}" if outdated else "nothing to change")


if __name__ == "__main__":
    main()
