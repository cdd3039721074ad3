"""``deprecation``: libraries say here which of their names and arguments will go."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from runnel import logging

__all__ = [
    "deprecated",
    "deprecated_alias",
    "deprecated_arg_values",
    "deprecated_args",
    "deprecated_argument_lookup",
    "deprecated_endpoints",
    "rewrite_argument_docstring",
    "silence",
]

_said: Counter[Any] = Counter()
_silent: list[None] = []


def _say(key: Any, once: bool, what: str, date: str | None, instructions: str) -> None:
    """Warns of ``what``, with the name of the function that is called in ``key[0]``."""
    if _silent or (once and _said[key]):
        return
    _said[key] += 1
    when = "in a future version" if date is None else f"after {date}"
    name = getattr(key[0], "__qualname__", str(key[0]))
    logging.warning(
        "%s: %s is deprecated and will be removed %s: %s", name, what, when, instructions
    )


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[..., Any]:
    """Decorates a function, or a class, that will go: its first call warns.

    Example:
        >>> @deprecated("2020-01-01", "Use fit.")
        ... def learn(): ...
    """

    def decorate(target: Any) -> Any:
        if isinstance(target, type):
            target.__init__ = decorate(target.__init__)  # type: ignore[misc]
            return target

        @functools.wraps(target)
        def warned(*args: Any, **kwargs: Any) -> Any:
            _say((target, None), warn_once, "it", date, instructions)
            return target(*args, **kwargs)

        return warned

    return decorate


def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable[..., Any]:
    """Decorates a function with arguments that will go: to give one warns.

    An argument is its name, or its name and a value that does not warn.
    """
    pairs = [
        (n, ()) if isinstance(n, str) else (n[0], n[1:]) for n in deprecated_arg_names_or_tuples
    ]
    once = kwargs.get("warn_once", True)
    return _of_arguments(
        date, instructions, once, lambda name, value: _is_meant(pairs, name, value)
    )


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **deprecated_kwargs: Any
) -> Callable[..., Any]:
    """Decorates a function with values of arguments that will go: to give one warns."""

    def is_meant(name: str, value: Any) -> bool:
        return name in deprecated_kwargs and _same(value, deprecated_kwargs[name])

    return _of_arguments(date, instructions, warn_once, is_meant)


def _is_meant(pairs: list[tuple[str, Any]], name: str, value: Any) -> bool:
    return any(name == n and not any(_same(value, ok) for ok in good) for n, good in pairs)


def _same(value: Any, other: Any) -> bool:
    return value is other or (type(value) is type(other) and bool(value == other))


def _of_arguments(
    date: str | None, instructions: str, once: bool, is_meant: Callable[[str, Any], bool]
) -> Callable[..., Any]:
    def decorate(target: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(target)

        @functools.wraps(target)
        def warned(*args: Any, **kwargs: Any) -> Any:
            try:
                given = signature.bind_partial(*args, **kwargs).arguments
            except TypeError:  # the call itself says what is wrong
                given = {}
            for name, value in given.items():
                if is_meant(name, value):
                    _say((target, name), once, f"{name}={value!r}", date, instructions)
            return target(*args, **kwargs)

        return warned

    return decorate


def deprecated_alias(
    deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True
) -> Any:
    """``func_or_class`` under a name that will go: its first call warns."""
    if isinstance(func_or_class, type):
        made = type(func_or_class)(deprecated_name.rpartition(".")[2], (func_or_class,), {})
        made.__module__ = func_or_class.__module__
        first = func_or_class.__init__  # type: ignore[misc]

        def begin(self: Any, *args: Any, **kwargs: Any) -> None:
            _say((deprecated_name, None), warn_once, "it", None, f"Use {name}.")
            first(self, *args, **kwargs)

        made.__init__ = functools.wraps(first)(begin)  # type: ignore[misc]
        return made

    @functools.wraps(func_or_class)
    def warned(*args: Any, **kwargs: Any) -> Any:
        _say((deprecated_name, None), warn_once, "it", None, f"Use {name}.")
        return func_or_class(*args, **kwargs)

    return warned


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has two names; a ValueError if both are given."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Give {new_name}, not also its older name {old_name}")
    return old_value


def deprecated_endpoints(*args: str) -> Callable[..., Any]:
    """Decorates a function with the public names of it that will go."""
    return lambda target: target


def rewrite_argument_docstring(old_doc: str, old_argument: str, new_argument: str) -> str:
    """A docstring, with an argument of it under another name."""
    return old_doc.replace(f"`{old_argument}`", f"`{new_argument}`").replace(
        f"{old_argument}:", f"{new_argument}:"
    )


@contextmanager
def silence() -> Iterator[None]:
    """Within, nothing warns."""
    _silent.append(None)
    try:
        yield
    finally:
        _silent.pop()
