"""Conditionals whose predicate may be known while building."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.control_flow.conditional import cond
from runnel.graph.constant_value import constant_value


def smart_constant_value(pred: Any) -> bool | None:
    """The value of a predicate where it is known while building, else None."""
    if not hasattr(pred, "graph"):
        return bool(pred)
    found = constant_value(pred)
    return None if found is None else bool(found)


def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any],
    false_fn: Callable[[], Any],
    name: str | None = None,
) -> Any:
    """One or the other, now where it is known, else by a conditional."""
    known = smart_constant_value(pred)
    if known is None:
        return cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()
