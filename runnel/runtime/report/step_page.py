"""An explained step as text, and as a page of HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from runnel.runtime.devices.device_memory import readable_size
from runnel.runtime.report.page import COLOURS, chip, page, table
from runnel.runtime.report.tier_reason import time_text

if TYPE_CHECKING:
    from runnel.runtime.report.explain_step import (
        ForShapes,
        StepExplanation,
        Times,
        UnitExplanation,
    )

_SHOWN = 4
_HEADS = ("Unit", "Operations", "Device", "Tier", "Why", "Variables", "Signatures")


def _flat(step: StepExplanation) -> Iterator[tuple[str, UnitExplanation]]:
    for number, unit in enumerate(step.units):
        yield str(number), unit
        for part, stretch in enumerate(unit.stretches):
            yield f"{number}.{part}", stretch


def _operations(unit: UnitExplanation, limit: int | None = _SHOWN) -> str:
    names = unit.operations if limit is None else unit.operations[:limit]
    more = len(unit.operations) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _times(times: Times | None) -> str:
    if times is None:
        return "not run"
    if not times.timed:
        return f"{times.runs} runs, none of them timed"
    timed = f", {times.timed} timed" if times.timed < times.runs else ""
    mean, fastest = time_text(times.seconds), time_text(times.fastest)
    return f"{times.runs} runs of {mean} (fastest {fastest}{timed})"


def _signature(one: ForShapes) -> list[str]:
    shapes = ", ".join(str(shape) for shape in one.shapes) or "no inputs"
    lines = [f"{shapes}: {one.tier}, {one.why}"]
    if one.interpreted is not None:
        lines.append(f"  interpreted: {_times(one.interpreted)}")
    if one.tier == "compiled":
        lines.append(f"  compiled: {_times(one.compiled)}; memory {readable_size(one.memory)}")
    return lines


def _counts(step: StepExplanation) -> str:
    shown = {
        name: readable_size(count) if "memory" in name else str(count)
        for name, count in step.counts.items()
    }
    return ", ".join(f"{name}: {text}" for name, text in shown.items())


def step_text(step: StepExplanation) -> str:
    """The units one after the other."""
    lines = [f"A step of {len(step)} units, run {step.runs} times ({_counts(step)})"]
    for number, unit in _flat(step):
        lines.append("")
        lines.append(
            f"{number}  {unit.kind} on {unit.device or 'its devices'}: {unit.tier}; {unit.why}"
        )
        if unit.operations:
            lines.append(f"   {len(unit.operations)} operations: {_operations(unit)}")
        if unit.state_bytes:
            lines.append(f"   variables: {readable_size(unit.state_bytes)}")
        for one in unit.signatures:
            lines += [f"   {line}" for line in _signature(one)]
            if one.hlo is not None:
                lines += [f"      {line}" for line in one.hlo.splitlines()]
    return "\n".join(lines)


def step_page(step: StepExplanation) -> str:
    """The page: a table of units, and the program of each that is compiled."""
    tiers = list(dict.fromkeys(unit.tier for _, unit in _flat(step)))
    colour = {tier: COLOURS[number % len(COLOURS)] for number, tier in enumerate(tiers)}
    rows, programs = [], []
    for number, unit in _flat(step):
        signatures = "<br>".join(
            escape(line) for one in unit.signatures for line in _signature(one)
        )
        rows.append(
            f'<tr><td>{number}</td><td class="name" title="{escape(_operations(unit, None))}">'
            f"{len(unit.operations)}: {escape(_operations(unit))}</td>"
            f"<td>{escape(unit.device)}</td><td>{chip(unit.tier, colour[unit.tier])}</td>"
            f"<td>{escape(unit.why)}</td><td>{readable_size(unit.state_bytes)}</td>"
            f'<td class="at">{signatures}</td></tr>'
        )
        for one in unit.signatures:
            if one.hlo is not None:
                shapes = escape(", ".join(map(str, one.shapes)))
                programs.append(f"<h2>Unit {number} for {shapes or 'no inputs'}</h2>")
                programs.append(f"<pre>{escape(one.hlo)}</pre>")
    return page(
        "Step",
        [
            f"<h1>A step of {len(step)} units, run {step.runs} times</h1>",
            f"<p>{escape(_counts(step))}</p>",
            table("units", _HEADS, rows),
            *programs,
        ],
    )
