"""Pages of HTML that need no other file."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem; color: #1d2433; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #e4e8ef; }
td.name { font-family: ui-monospace, monospace; }
td.at { color: #667; font-family: ui-monospace, monospace; font-size: 12px; }
pre { background: #f5f7fa; padding: .8rem; overflow: auto; max-height: 30rem; font-size: 12px; }
.chip { display: inline-block; padding: 0 .6em; border-radius: 1em; color: #fff; }
.bar { display: flex; height: 1.2rem; border-radius: .3rem; overflow: hidden; margin: 1rem 0; }
input { font: inherit; padding: .3rem .6rem; width: 24rem; margin: 1rem 0; }
"""
COLOURS = ("#3767d4", "#c2571a", "#2f8a4e", "#8a4bb0", "#b0303f", "#23868c", "#7a6a12", "#555e6e")


def page(title: str, parts: Iterable[str]) -> str:
    """A page of ``parts``, which are HTML."""
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            *parts,
            "</body></html>",
        ]
    )


def chip(text: str, colour: str) -> str:
    """A word on a coloured ground."""
    return f'<span class="chip" style="background:{colour}">{escape(text)}</span>'


def table(name: str, heads: Iterable[str], rows: Iterable[str]) -> str:
    """A table of ``rows``, which are HTML."""
    head = "".join(f"<th>{text}</th>" for text in heads)
    return (
        f'<table id="{name}"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    )
