"""A placement as a page of HTML that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from runnel.runtime.report.page import COLOURS, chip, page, table

if TYPE_CHECKING:
    from runnel.runtime.explain.explain_placement import PlacementExplanation

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
        device.name: COLOURS[number % len(COLOURS)]
        for number, device in enumerate(explanation.devices)
    }

    def shown(device: str) -> str:
        return chip(device.rpartition("device:")[2], colour[device])

    shares = []
    counts = []
    for device in explanation.devices:
        count = sum(entry.device == device.name for entry in explanation)
        counts.append(
            f"<tr><td>{shown(device.name)}</td><td>{escape(device.name)}</td><td>{count}</td></tr>"
        )
        if count:
            shares.append(f'<div style="flex:{count};background:{colour[device.name]}"></div>')
    rows = []
    for entry in explanation:
        op = entry.operation
        line = op.creation_site()[-1].partition("\n")[0]
        rows.append(
            f'<tr><td class="name">{escape(op.name)}</td><td>{escape(op.type)}</td>'
            f"<td>{shown(entry.device)}</td><td>{escape(entry.reason)}</td>"
            f'<td class="at">{escape(line)}</td></tr>'
        )
    crossings = [
        f'<tr><td class="name">{escape(c.tensor)}</td><td>{shown(c.source)}</td>'
        f"<td>{shown(c.destination)}</td><td>{c.consumers}</td></tr>"
        for c in explanation.crossings
    ]
    return page(
        "Placement",
        [
            f"<h1>Placement of {len(explanation)} operations</h1>",
            f'<div class="bar">{"".join(shares)}</div>',
            table("devices", ("Device", "Name", "Operations"), counts),
            "<h2>Operations</h2>",
            '<input id="filter" placeholder="Filter: a name, a type, a device, a reason">',
            table("operations", ("Operation", "Type", "Device", "Why", "Made at"), rows),
            f"<h2>Sent between devices ({len(crossings)})</h2>",
            table("sent", ("Value", "From", "To", "Consumers"), crossings),
            *_speeds(explanation),
            f"<script>{_FILTER}</script>",
        ],
    )


def _speeds(explanation: PlacementExplanation) -> list[str]:
    if not explanation.speeds:
        return []
    items = "".join(f"<li>{escape(line)}</li>" for line in explanation.speeds)
    return ["<h2>What the cost model went by</h2>", f'<ul id="speeds">{items}</ul>']
