"""Scopes of names: the current one, and names with one before them or without."""

from __future__ import annotations

import re

from runnel.graph.graph import get_default_graph

_PREFIXES = r"([\^]|loc:@|^)"
"""What may stand before a name: that of a control input, or of a place."""


def get_name_scope() -> str:
    """The current scope of names of the default graph, without a slash at its end."""
    return get_default_graph().get_name_scope()


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """``name`` without the scope ``export_scope`` before it."""
    if not export_scope:
        return name
    scope = re.escape(export_scope.rstrip("/"))
    return re.sub(_PREFIXES + scope + r"[\/]+(.*)", r"\1\2", name, count=1)


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """``name`` with the scope ``import_scope`` before it."""
    if not import_scope:
        return name
    scope = import_scope.rstrip("/")
    return re.sub(_PREFIXES + r"(.*)", rf"\1{scope}/\2", name, count=1)
