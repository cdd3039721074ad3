"""The same table twice: for the terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.interleaving import Spread
from benchmarks.results import Row

CONTENDERS = {
    "runnel": "runnel",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "pytorch": "PyTorch",
}
"""The contenders that have a column, with the names that readers know."""

HEADINGS = ("what", *CONTENDERS.values(), "times faster than", "must show", "")


def display_name(contender: str) -> str:
    """The name of a contender for readers."""
    return CONTENDERS.get(contender, contender)


def number(value: float) -> str:
    """A number with three significant digits.

    >>> number(1234567.0), number(52345.0), number(1.2345), number(0.0123)
    ('1.23 M', '52,300', '1.23', '0.0123')
    """
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g} M"
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def value_cell(spread: Spread | None, unit: str) -> str:
    """A measured value with its unit, or a dash."""
    if spread is None:
        return "–"
    return number(spread.median) if unit == "ops/s" else f"{number(spread.median)} {unit}".strip()


def ratio_cell(row: Row) -> str:
    """The ratios to every peer, with quartiles."""
    return "; ".join(
        f"{display_name(peer)} {number(ratio.median)} ({number(ratio.low)}–{number(ratio.high)})"
        for peer, ratio in row.faster_than.items()
    )


def cells(row: Row) -> list[str]:
    """The cells of a row, in the order of `HEADINGS`."""
    return [
        f"{row.what}, ops/s" if row.unit == "ops/s" else row.what,
        *(value_cell(row.values.get(contender), row.unit) for contender in CONTENDERS),
        ratio_cell(row) or "–",
        row.must_show or "–",
        {True: "✓", False: "✗", None: ""}[row.passed],
    ]


def markdown(rows: Sequence[Row], notes: bool) -> str:
    """The table as Markdown, with the rows' notes below it where they are wanted."""
    lines = [
        "| " + " | ".join(HEADINGS) + " |",
        "|---|" + "--:|" * len(CONTENDERS) + "---|---|:-:|",
        *("| " + " | ".join(cells(row)) + " |" for row in rows),
    ]
    remarks = [f"- {row.what}: {note}." for row in rows for note in row.notes] if notes else []
    return "\n".join([*lines, "", *remarks] if remarks else lines)


def print_table(console: Console, title: str, rows: Iterable[Row]) -> None:
    """Print the table and the notes to the terminal."""
    table = Table(title=title, show_lines=True)
    for position, heading in enumerate(HEADINGS):
        right = 1 <= position <= len(CONTENDERS)
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    rows = list(rows)
    for row in rows:
        style = {True: "green", False: "bold red", None: ""}[row.passed]
        *texts, mark = (escape(cell.replace("`", "")) for cell in cells(row))
        table.add_row(*texts, f"[{style}]{mark}[/]" if style else mark)
    console.print(table)
    for row in rows:
        for note in row.notes:
            console.print(f"[dim]{escape(row.what)}: {escape(note)}[/]")
