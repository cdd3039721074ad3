"""The rows of a cluster for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from runnel.launch.cluster_view import QueueLength, TaskRow

_COLUMNS = ("task", "state", "step", "steps/s", "stale", "running", "queues", "memory", "out", "in")
_MOST_QUEUES = 3


def showing(console: Console, rows: Callable[[], Sequence[TaskRow]], stays: bool = True) -> Live:
    """Within, the console shows what ``rows`` gives, always anew; the last of it may stay."""
    return Live(
        console=console,
        get_renderable=lambda: cluster_table(rows()),
        refresh_per_second=2,
        transient=not stays,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def cluster_table(rows: Sequence[TaskRow]) -> Table:
    """A table of the tasks; names of others' queues are text, never markup."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in _COLUMNS:
        table.add_column(
            column, justify="left" if column in ("task", "state", "queues") else "right"
        )
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: TaskRow) -> list[Text]:
    state, style = row.state, "green" if row.state == "up" else "red"
    if row.state == "up" and row.straggles:
        state, style = "straggles", "yellow"
    if row.restarts:
        state += f" (back {row.restarts}×)"
    up = row.state == "up"
    return [
        Text(row.task),
        Text(state, style=style),
        Text("" if row.global_step is None else f"{row.global_step:,}"),
        Text(number_text(row.steps_per_second)),
        Text(number_text(row.staleness)),
        Text(str(row.running) if up else ""),
        Text(queues_text(row.queues)),
        Text(bytes_text(row.memory_bytes) if row.memory_bytes else ""),
        Text(rate_text(row.sent_per_second)),
        Text(rate_text(row.received_per_second)),
    ]


def number_text(value: float | None) -> str:
    """Three digits, or as many as there are before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def bytes_text(value: float) -> str:
    """Such as ``1.5 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def rate_text(value: float | None) -> str:
    """Bytes a second."""
    return "" if value is None else f"{bytes_text(value)}/s"


def queues_text(queues: Sequence[QueueLength]) -> str:
    """The longest queues, with what they can hold."""
    longest = sorted(queues, key=lambda queue: -queue.size)[:_MOST_QUEUES]
    texts = [f"{q.name} {q.size}" + (f"/{q.capacity}" if q.capacity >= 0 else "") for q in longest]
    more = len(queues) - len(longest)
    return ", ".join(texts) + (f" and {more} more" if more else "")
