"""The names of summaries: a scope for the operation, a tag for TensorBoard."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from runnel.graph.default_collections import add_to_collections
from runnel.graph.graph import name_scope

_ILLEGAL = re.compile(r"[^-/\w.]")


def clean_tag(name: str | None) -> str | None:
    """``name`` as the name of an operation may be: other characters become underscores."""
    return None if name is None else _ILLEGAL.sub("_", name).lstrip("/")


@contextmanager
def summary_scope(
    name: str, family: str | None = None, default_name: str | None = None, values: Any = ()
) -> Iterator[tuple[str, str]]:
    """A name scope of its own for a summary: its tag, and the scope's name.

    The tag is the scope's name, after ``family``, which TensorBoard groups by.
    """
    cleaned, group = clean_tag(name), clean_tag(family)
    inner = cleaned if group is None else f"{group}/{cleaned}"
    with name_scope(inner, default_name, values) as scope:
        tag = scope.rstrip("/")
        yield (tag if group is None else f"{group}/{tag}"), scope


def collect(value: Any, collections: Iterable[str] | None, default: Iterable[str]) -> None:
    """Adds ``value`` to the named collections, else to the default ones."""
    add_to_collections(default if collections is None else collections, value)
