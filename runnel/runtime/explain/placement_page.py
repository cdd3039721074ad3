"""A placement as a page of HTML that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runnel.runtime.explain.explain_placement import PlacementExplanation

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem; color: #1d2433; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #e4e8ef; }
td.name { font-family: ui-monospace, monospace; }
td.at { color: #667; font-family: ui-monospace, monospace; font-size: 12px; }
.chip { display: inline-block; padding: 0 .6em; border-radius: 1em; color: #fff; }
.bar { display: flex; height: 1.2rem; border-radius: .3rem; overflow: hidden; margin: 1rem 0; }
input { font: inherit; padding: .3rem .6rem; width: 24rem; margin: 1rem 0; }
"""
_COLOURS = ("#3767d4", "#c2571a", "#2f8a4e", "#8a4bb0", "#b0303f", "#23868c", "#7a6a12", "#555e6e")

_FILTER = """
const box = document.getElementById('filter');
box.addEventListener('input', () => {
  const wanted = box.value.toLowerCase();
  for (const row of document.querySelectorAll('#operations tbody tr'))
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
});
"""


def placement_page(explanation: PlacementExplanation) -> str:
    """The page: devices, operations with reasons and lines, what is sent."""
    colour = {
        device.name: _COLOURS[number % len(_COLOURS)]
        for number, device in enumerate(explanation.devices)
    }

    def chip(device: str) -> str:
        text = escape(device.rpartition("device:")[2])
        return f'<span class="chip" style="background:{colour[device]}">{text}</span>'

    shares = []
    counts = []
    for device in explanation.devices:
        count = sum(entry.device == device.name for entry in explanation)
        counts.append(
            f"<tr><td>{chip(device.name)}</td><td>{escape(device.name)}</td><td>{count}</td></tr>"
        )
        if count:
            shares.append(f'<div style="flex:{count};background:{colour[device.name]}"></div>')
    rows = []
    for entry in explanation:
        op = entry.operation
        line = op.creation_site()[-1].partition("\n")[0]
        rows.append(
            f'<tr><td class="name">{escape(op.name)}</td><td>{escape(op.type)}</td>'
            f"<td>{chip(entry.device)}</td><td>{escape(entry.reason)}</td>"
            f'<td class="at">{escape(line)}</td></tr>'
        )
    crossings = [
        f'<tr><td class="name">{escape(c.tensor)}</td><td>{chip(c.source)}</td>'
        f"<td>{chip(c.destination)}</td><td>{c.consumers}</td></tr>"
        for c in explanation.crossings
    ]
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f"<title>Placement</title><style>{_STYLE}</style></head><body>",
            f"<h1>Placement of {len(explanation)} operations</h1>",
            f'<div class="bar">{"".join(shares)}</div>',
            _table("devices", ("Device", "Name", "Operations"), counts),
            "<h2>Operations</h2>",
            '<input id="filter" placeholder="Filter: a name, a type, a device, a reason">',
            _table("operations", ("Operation", "Type", "Device", "Why", "Made at"), rows),
            f"<h2>Sent between devices ({len(crossings)})</h2>",
            _table("sent", ("Value", "From", "To", "Consumers"), crossings),
            *_speeds(explanation),
            f"<script>{_FILTER}</script></body></html>",
        ]
    )


def _speeds(explanation: PlacementExplanation) -> list[str]:
    if not explanation.speeds:
        return []
    items = "".join(f"<li>{escape(line)}</li>" for line in explanation.speeds)
    return ["<h2>What the cost model went by</h2>", f'<ul id="speeds">{items}</ul>']


def _table(name: str, heads: tuple[str, ...], rows: list[str]) -> str:
    head = "".join(f"<th>{text}</th>" for text in heads)
    return (
        f'<table id="{name}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )
