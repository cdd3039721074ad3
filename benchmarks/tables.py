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
    "runnel.xla": "runnel through XLA",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "pytorch": "PyTorch",
    "torch.compile": "torch.compile",
    "ray": "Ray",
    "mxnet": "MXNet",
}
"""The contenders that have a column, with the names that readers know."""


def columns(rows: Sequence[Row]) -> list[str]:
    """The contenders that were measured in some row, in the order of `CONTENDERS`."""
    return [name for name in CONTENDERS if any(name in row.values for row in rows)]


def headings(contenders: Sequence[str]) -> list[str]:
    """The headings of a table with these contenders."""
    names = map(display_name, contenders)
    return ["what", *names, "times faster than", "must show", ""]


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


def cells(row: Row, contenders: Sequence[str]) -> list[str]:
    """The cells of a row, in the order of `headings`."""
    return [
        f"{row.what}, ops/s" if row.unit == "ops/s" else row.what,
        *(value_cell(row.values.get(contender), row.unit) for contender in contenders),
        ratio_cell(row) or "–",
        row.must_show or "–",
        {True: "✓", False: "✗", None: ""}[row.passed],
    ]


def markdown(rows: Sequence[Row], notes: bool) -> str:
    """The table as Markdown, with the rows' notes below it where they are wanted."""
    contenders = columns(rows)
    lines = [
        "| " + " | ".join(headings(contenders)) + " |",
        "|---|" + "--:|" * len(contenders) + "---|---|:-:|",
        *("| " + " | ".join(cells(row, contenders)) + " |" for row in rows),
    ]
    remarks = [f"- {row.what}: {note}." for row in rows for note in row.notes] if notes else []
    return "\n".join([*lines, "", *remarks] if remarks else lines)


def print_table(console: Console, title: str, rows: Iterable[Row]) -> None:
    """Print the table and the notes to the terminal."""
    rows = list(rows)
    contenders = columns(rows)
    table = Table(title=title, show_lines=True)
    for position, heading in enumerate(headings(contenders)):
        right = 1 <= position <= len(contenders)
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in rows:
        style = {True: "green", False: "bold red", None: ""}[row.passed]
        *texts, mark = (escape(cell.replace("`", "")) for cell in cells(row, contenders))
        table.add_row(*texts, f"[{style}]{mark}[/]" if style else mark)
    console.print(table)
    for row in rows:
        for note in row.notes:
            console.print(f"[dim]{escape(row.what)}: {escape(note)}[/]")
