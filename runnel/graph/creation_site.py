"""Where the user's program created an operation, captured cheaply and rendered on demand.

A site is a tuple of code objects and instruction offsets, innermost frame first, of the frames
that are not runnel's own. Line numbers are decoded only when an error needs them. The site of an
operation that was made elsewhere is text: its name there, and the rendered frames.
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

# (code, offset, code, offset, ...): one flat tuple, since a graph holds one for each operation.
Site = tuple[Any, ...]

_PACKAGE = str(Path(__file__).resolve().parent.parent)
_is_internal: dict[str, bool] = {}


def _internal(filename: str) -> bool:
    known = _is_internal[filename] = filename.startswith(_PACKAGE)
    return known


def capture_site(depth: int = 2) -> Site:
    """The user's frames that led to the caller's caller."""
    frame: FrameType | None = sys._getframe(depth)
    internal = _is_internal
    while frame is not None:
        filename = frame.f_code.co_filename
        known = internal.get(filename)
        if known is None:
            known = _internal(filename)
        if not known:
            break
        frame = frame.f_back
    if frame is None:
        return ()
    # Up to three frames, without a loop: this is run for every operation.
    caller = frame.f_back
    if caller is None:
        return frame.f_code, frame.f_lasti
    outer = caller.f_back
    if outer is None:
        return frame.f_code, frame.f_lasti, caller.f_code, caller.f_lasti
    f, c, o = frame, caller, outer
    return f.f_code, f.f_lasti, c.f_code, c.f_lasti, o.f_code, o.f_lasti


def _line(code: CodeType, offset: int) -> int:
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def render_site(site: Site) -> list[str]:
    """``file:line, in function`` with the source line, outermost frame first."""
    if site and isinstance(site[0], str):
        return list(site[1:])
    rendered = []
    for code, offset in reversed(list(zip(site[::2], site[1::2], strict=True))):
        line = _line(code, offset)
        source = linecache.getline(code.co_filename, line).strip()
        text = f"{code.co_filename}:{line}, in {code.co_name}"
        rendered.append(f"{text}\n    {source}" if source else text)
    return rendered
