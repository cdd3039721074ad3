"""Names of operations in protocol buffers, relative to the scope they are exported from."""

from __future__ import annotations


def strip_scope(name: str, scope: str | None) -> str:
    """``name`` as seen from inside ``scope``."""
    return name.removeprefix(scope.rstrip("/") + "/") if scope else name


def add_scope(name: str, scope: str | None) -> str:
    """``name`` when what it belongs to was imported under ``scope``."""
    return f"{scope.rstrip('/')}/{name}" if scope else name
