"""A tensor's value as text, shortened, in the two formats that TensorFlow prints."""

from __future__ import annotations

from typing import Any

import numpy as np


def summarize(value: Any, limit: int = 3) -> str:
    """The first ``limit`` elements in brackets (all when it is negative): ``[[1 2 3]...]``."""
    array = np.asarray(value)
    limit = array.size if limit < 0 else limit
    elements = iter(array.reshape(-1).tolist() if array.dtype != object else array.reshape(-1))
    shown = 0

    def walk(axis: int) -> str:
        nonlocal shown
        if axis >= array.ndim - 1:
            count = array.shape[axis] if array.ndim else 1
            room = min(count, limit - shown)
            row = " ".join(_element(next(elements), array.dtype) for _ in range(room))
            shown += room
            return row + ("..." if room < count and axis else "")
        parts = []
        for _ in range(array.shape[axis]):
            if shown >= limit:
                break
            parts.append(f"[{walk(axis + 1)}]")
        return "".join(parts)

    text = walk(0) if array.size else ""
    return f"[{text}{'...' if array.size > limit else ''}]"


def summarize_edges(value: Any, limit: int = 3) -> str:
    """The first and last ``limit`` elements of each axis, rows on lines of their own."""
    array = np.asarray(value)
    if not array.ndim:
        return _element(array.item(), array.dtype, quoted=True)
    if not array.size:
        return "[]"
    return _edges(array, limit, 1)


def _edges(array: np.ndarray, limit: int, indent: int) -> str:
    count = array.shape[0]
    short = limit >= 0 and 2 * limit < count
    chosen = [*range(limit), *range(count - limit, count)] if short else list(range(count))
    if array.ndim == 1:
        parts = [_element(array[i], array.dtype, quoted=True) for i in chosen]
        separator = " "
    else:
        parts = [_edges(array[i], limit, indent + 1) for i in chosen]
        separator = "\n" * (array.ndim - 1) + " " * indent
    if short:
        parts.insert(limit, "...")
    return f"[{separator.join(parts)}]"


def _element(value: Any, dtype: np.dtype, quoted: bool = False) -> str:
    if dtype == object:
        return f'"{_escaped(value)}"' if quoted else _escaped(value)
    if dtype.kind in "biu":
        return str(int(value))
    if dtype.kind == "c":
        width = dtype.itemsize // 2
        return f"({_number(value.real, width)},{_number(value.imag, width)})"
    return _number(value, dtype.itemsize)


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"', "'": "\\'"}


def _escaped(value: Any) -> str:
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return "".join(_ESCAPES.get(character, character) for character in text)


def _number(value: Any, width: int) -> str:
    """With 6 (15) digits where they suffice to tell the number, else with 9 (17)."""
    number = float(value)
    short, long = (15, 17) if width == 8 else (6, 9)
    text = f"{number:.{short}g}"
    kind = np.float64 if width == 8 else np.float32
    return text if kind(text) == kind(number) or number != number else f"{number:.{long}g}"
