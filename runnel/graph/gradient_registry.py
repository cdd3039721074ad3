"""Gradients registered by name: those of op types, and those for ``gradient_override_map``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.graph.creation_site import Site
from runnel.graph.registry import caller, find_op_def, where

_GRADIENTS: dict[str, tuple[Callable[..., Any] | None, Site]] = {}


class RegisterGradient:
    """Registers a gradient function under a name: an op type, or one for ``gradient_override_map``.

    Example:
        >>> @RegisterGradient("Twice")
        ... def _twice(op, grad):
        ...     return 2 * grad
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _register_named_gradient(self._op_type, function)
        return function


def NotDifferentiable(op_type: str) -> None:  # noqa: N802 (TensorFlow's name)
    """Declares that no gradient flows through ops of this type."""
    op_def = find_op_def(op_type)
    if op_def is not None and op_def.gradient_function is None:
        op_def.differentiable = False
    _register_named_gradient(op_type, None)


NoGradient = NotDifferentiable


def _register_named_gradient(name: str, function: Callable[..., Any] | None) -> None:
    op_def = find_op_def(name)
    first: Site | None = None
    if name in _GRADIENTS:
        first = _GRADIENTS[name][1]
    elif op_def is not None and op_def.gradient_function is not None:
        first = op_def.gradient_site
    if first is not None:
        raise KeyError(f"The gradient of {name} is registered already, at {where(first)}")
    code = getattr(function, "__code__", None)
    _GRADIENTS[name] = (function, (code, 0) if code else caller(3))


def gradient_function(name: str) -> Callable[..., Any] | None:
    """The gradient registered under ``name``; None if it has none by declaration.

    Raises LookupError when nothing was registered.
    """
    if name in _GRADIENTS:
        return _GRADIENTS[name][0]
    op_def = find_op_def(name)
    if op_def is not None:
        if op_def.gradient_function is not None:
            return op_def.gradient_function
        if not op_def.differentiable:
            return None
    raise LookupError(f"No gradient is registered for {name!r}")
