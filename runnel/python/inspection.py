"""``tf_inspect``: Python's ``inspect``, with what Python 3.11 has dropped of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import *  # noqa: F403
from typing import Any, NamedTuple

__all__ = [*inspect.__all__, "ArgSpec", "fn_args", "getargspec"]


class ArgSpec(NamedTuple):
    """The arguments of a function, as Python 2 described them."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(func: Callable[..., Any]) -> ArgSpec:
    """The arguments of ``func``; those that must be given by keyword are left out."""
    found = inspect.getfullargspec(func)
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


def fn_args(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments that a caller gives ``fn``: a method's leave ``self`` out."""
    return tuple(
        name
        for name, argument in inspect.signature(fn).parameters.items()
        if argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
    )
