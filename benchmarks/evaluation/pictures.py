"""Line charts as SVG: axes, series with or without marks, a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 700, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 230, 36, 52
MOST_TICKS = 8
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f")
"""Okabe and Ito's, which colour-blind readers can tell apart."""


@dataclass(frozen=True, slots=True)
class Series:
    """A named line through points. Of one colour are series with the same number."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int = 0
    dashed: bool = False
    """A line without marks, as for what was computed; otherwise points are marked."""
    marks: bool = True


@dataclass(frozen=True, slots=True)
class Axis:
    """The label of an axis, and how it is divided."""

    label: str
    logarithmic: bool = False
    least: float | None = None
    """Where a linear axis begins at the latest."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """Turns values into places of the picture."""

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.begin + (value - low) / (high - low) * (self.end - self.begin)


def ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Round values that cover a range.

    >>> ticks(0.0, 9.0, False)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    >>> ticks(3.0, 150.0, True)
    [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]
    >>> ticks(3.0, 15000.0, True)
    [1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0]
    """
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        powers = [10.0**power for power in range(first, max(last, first + 1) + 1)]
        marks = [round(m * power, 12) for power in powers for m in (1, 2, 5)]
        below = sum(mark <= low for mark in marks) - 1
        above = next(place for place, mark in enumerate(marks) if mark >= high)
        marks = marks[below : max(above, below + 1) + 1]
        return marks if len(marks) <= MOST_TICKS else powers
    span = (high - low) or abs(high) or 1.0
    rough = span / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def label(value: float) -> str:
    """A short number.

    >>> label(1000000.0), label(25000.0), label(0.1), label(3.0)
    ('1M', '25k', '0.1', '3')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def chart(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """The picture. Points that a logarithmic axis cannot show are left out."""
    series = [_shown(one, x, y) for one in series]
    series = [one for one in series if one.points]
    if not series:
        raise ValueError(f"the picture {title!r} has no points")
    across = _scale(x, [p[0] for one in series for p in one.points], LEFT, WIDTH - RIGHT)
    up = _scale(y, [p[1] for one in series for p in one.points], HEIGHT - BOTTOM, TOP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text((LEFT + WIDTH - RIGHT) / 2, 20, title, "middle", 'font-weight="bold"'),
        *_grid(x, y, across, up),
    ]
    for number, one in enumerate(series):
        lines += _drawn(one, across, up)
        lines += _legend(one, number)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _shown(one: Series, x: Axis, y: Axis) -> Series:
    points = [
        (a, b)
        for a, b in one.points
        if math.isfinite(b) and not (x.logarithmic and a <= 0) and not (y.logarithmic and b <= 0)
    ]
    return Series(one.name, points, one.colour, one.dashed, one.marks)


def _scale(axis: Axis, values: list[float], begin: float, end: float) -> _Scale:
    low = min(values) if axis.least is None else min(axis.least, *values)
    marks = ticks(low, max(values), axis.logarithmic)
    return _Scale(marks[0], marks[-1], begin, end, axis.logarithmic)


def _grid(x: Axis, y: Axis, across: _Scale, up: _Scale) -> list[str]:
    lines = []
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in ticks(across.low, across.high, x.logarithmic):
        place = across.at(value)
        lines.append(_line(place, TOP, place, bottom, "#dddddd"))
        lines.append(_text(place, bottom + 16, label(value), "middle"))
    for value in ticks(up.low, up.high, y.logarithmic):
        place = up.at(value)
        lines.append(_line(LEFT, place, right, place, "#dddddd"))
        lines.append(_text(LEFT - 6, place + 4, label(value), "end"))
    lines.append(_line(LEFT, bottom, right, bottom, "black"))
    lines.append(_line(LEFT, TOP, LEFT, bottom, "black"))
    lines.append(_text((LEFT + right) / 2, HEIGHT - 14, x.label, "middle"))
    middle = (TOP + bottom) / 2
    turned = f'transform="rotate(-90 18 {middle:.1f})"'
    lines.append(_text(18, middle, y.label, "middle", turned))
    return lines


def _drawn(one: Series, across: _Scale, up: _Scale) -> list[str]:
    places = [(across.at(a), up.at(b)) for a, b in one.points]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    lines = [f'<polyline points="{path}" {_stroke(one)}/>']
    if one.marks and not one.dashed:
        lines += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.2" {_fill(one)}/>' for a, b in places]
    return lines


def _legend(one: Series, number: int) -> list[str]:
    left, up = WIDTH - RIGHT + 12, TOP + 10 + 18 * number
    lines = [f'<polyline points="{left},{up} {left + 22},{up}" {_stroke(one)}/>']
    if one.marks and not one.dashed:
        lines.append(f'<circle cx="{left + 11}" cy="{up}" r="3.2" {_fill(one)}/>')
    return [*lines, _text(left + 28, up + 4, one.name, "start", 'font-size="11"')]


def _stroke(one: Series) -> str:
    dashes = ' stroke-dasharray="5 4"' if one.dashed else ""
    return f'fill="none" stroke="{COLOURS[one.colour % len(COLOURS)]}" stroke-width="1.8"{dashes}'


def _fill(one: Series) -> str:
    return f'fill="{COLOURS[one.colour % len(COLOURS)]}"'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{" " + more if more else ""}>'
        f"{escape(text)}</text>"
    )
