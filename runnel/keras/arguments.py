"""The arguments a library layer was made with, from which another of its kind can be made."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from runnel.keras import activations, constraints, initializers, regularizers

KINDS = {
    "initializer": initializers,
    "regularizer": regularizers,
    "constraint": constraints,
    "activation": activations,
}
"""What arguments with these names, or that end in them, may be given by name or as a dict."""
_EMPTY = inspect.Parameter.empty
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_OF_EVERY_LAYER = {"self", "name", "trainable", "dtype", "weights", "dynamic"}


def kind_of(name: str) -> Any:
    """The module that knows what an argument may be, or None."""
    for kind, module in KINDS.items():
        if name == kind or name.endswith(f"_{kind}"):
            return module
    return None


def found(name: str, value: Any) -> Any:
    """The function that an argument given by name, or as a dict, stands for."""
    module = kind_of(name) if isinstance(value, str | dict) else None
    return value if module is None else module.get(value)


def recorded(cls: type) -> None:
    """Makes ``cls.__init__`` note, on each new object, the arguments that it was called with."""
    initialize: Callable[..., None] = vars(cls).get("__init__") or cls.__init__  # type: ignore[misc]
    if getattr(initialize, "_records_for", None) is cls:
        return

    @functools.wraps(initialize)
    def noting(self: Any, *args: Any, **kwargs: Any) -> None:
        order = parameters_of(cls)[0]
        args = tuple(found(n, a) for n, a in zip(order, args, strict=False)) + args[len(order) :]
        kwargs = {name: found(name, value) for name, value in kwargs.items()}
        # The outermost class of the library decides: a program's subclass calls it its own way.
        if "_made_with" not in self.__dict__:
            self.__dict__["_made_with"] = (cls, args, dict(kwargs))
        initialize(self, *args, **kwargs)

    noting._records_for = cls  # type: ignore[attr-defined]
    cls.__init__ = noting  # type: ignore[misc]


@functools.cache
def parameters_of(cls: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The positional parameters of a class in order, and the defaults of all its parameters.

    A constructor that passes ``*args`` or ``**kwargs`` on has those of the next class too.
    """
    of_class = getattr(cls, "_parameters", None)
    if of_class is not None:
        found: tuple[tuple[str, ...], dict[str, Any]] = of_class()
        return found
    order: tuple[str, ...] = ()
    open_positions = True
    defaults: dict[str, Any] = {}
    for base in cls.__mro__:
        own = vars(base).get("__init__")
        if own is None or base is object:
            continue
        parameters = inspect.signature(own).parameters.values()
        if open_positions:
            order = tuple(p.name for p in parameters if p.kind is _POSITIONAL)[1:]
            open_positions = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
        for p in parameters:
            if p.kind in (_POSITIONAL, inspect.Parameter.KEYWORD_ONLY):
                defaults.setdefault(p.name, p.default)
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    return order, {n: d for n, d in defaults.items() if not n.startswith("_")}


def arguments_of(layer: Any) -> dict[str, Any]:
    """Every argument that ``layer`` was made with, by name, with the defaults of the others."""
    cls, args, kwargs = layer.__dict__.get("_made_with", (None, (), {}))
    if cls is None:
        return {}
    order, defaults = parameters_of(cls)
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    whole = {name: given.get(name, value) for name, value in defaults.items()}
    unknown = _OF_EVERY_LAYER
    return {n: v for n, v in whole.items() if n not in unknown and v is not _EMPTY}
