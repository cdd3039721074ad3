"""A workload: work that a contender repeats while it is being timed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Facts = dict[str, Any]


def _no_facts() -> Facts:
    return {}


@dataclass(frozen=True, slots=True)
class Workload:
    """Work to be timed, and what else the comparison wants to know about it."""

    run: Callable[[int], None]
    """Does the work the given number of times. It owns its loop, to keep that cost small."""
    facts: Callable[[], Facts] = _no_facts
    """Values for checks and tables, such as computed losses or a number of ops. JSON values."""


def load_workload(path: str, arguments: dict[str, Any]) -> Workload:
    """Make the workload that `"package.module:function"` builds from the arguments."""
    module_name, _, function_name = path.partition(":")
    function = getattr(importlib.import_module(module_name), function_name)
    workload = function(**arguments)
    if not isinstance(workload, Workload):
        raise TypeError(f"{path} returned {type(workload).__name__}, expected a Workload")
    return workload
