"""Default arguments for functions, in force inside a ``with`` block."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

ArgScope = dict[str, dict[str, Any]]
"""The default arguments by the key of a function."""


class _ScopesInForce(threading.local):
    """The scopes that this thread has opened, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[ArgScope] = [{}]


_in_force = _ScopesInForce()


def arg_scope_func_key(op: Any) -> str:
    """The key of a function in scopes."""
    return str(getattr(op, "_key_op", str(op)))


def has_arg_scope(func: Any) -> bool:
    """True for a function that :func:`add_arg_scope` has decorated."""
    return hasattr(func, "_key_op")


def current_arg_scope() -> ArgScope:
    """The defaults in force, to be opened again later."""
    return _in_force.stack[-1]


def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """The arguments of a decorated function that a scope can set."""
    _require_decorated(func)
    return tuple(func._arg_scope_arguments)


@contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[ArgScope]:
    """Sets arguments of the functions of a list, wherever they are called inside the block.

    The value is the scope, which can be opened again: ``with arg_scope(scope)``. An argument that a
    call gives itself wins over a scope, an inner scope over an outer one.

    Example:
        >>> slim = tf.contrib.slim
        >>> with slim.arg_scope([slim.conv2d], padding="SAME", activation_fn=tf.nn.elu):
        ...     net = slim.conv2d(images, 32, [3, 3])
    """
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise ValueError("When a scope is opened again, no arguments can be set")
        scope = dict(list_ops_or_scope)
    else:
        if not isinstance(list_ops_or_scope, list | tuple | set):
            raise TypeError(
                "arg_scope takes a list of functions, or a scope, not "
                f"{type(list_ops_or_scope).__name__}"
            )
        scope = dict(current_arg_scope())
        for func in list_ops_or_scope:
            _require_decorated(func)
            key = arg_scope_func_key(func)
            scope[key] = {**scope.get(key, {}), **kwargs}
    _in_force.stack.append(scope)
    try:
        yield scope
    finally:
        _in_force.stack.pop()


def add_arg_scope(func: F) -> F:
    """Decorates a function so that :func:`arg_scope` can set its arguments.

    Example:
        >>> @tf.contrib.framework.add_arg_scope
        ... def block(inputs, depth, activation=tf.nn.relu): ...
    """
    key = f"{func.__module__}.{func.__qualname__}"

    @functools.wraps(func)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        defaults = current_arg_scope().get(key)
        if defaults:
            # What the call gives by position is not set again.
            taken = positional[: len(args)]
            kwargs = {**{k: v for k, v in defaults.items() if k not in taken}, **kwargs}
        return func(*args, **kwargs)

    parameters = inspect.signature(func).parameters.values()
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    marked: Any = with_defaults
    marked._key_op = key
    marked._arg_scope_arguments = [p.name for p in parameters if p.default is not p.empty]
    return marked


def layer_of(layer: Callable[..., Any], name: str, doc: str, **fixed: Any) -> Any:
    """``layer`` with arguments that are fixed, as a decorated function of its own."""

    def made(*args: Any, **kwargs: Any) -> Any:
        return layer(*args, **{**kwargs, **fixed})

    made.__module__ = layer.__module__
    made.__name__ = made.__qualname__ = name
    made.__doc__ = doc
    given = inspect.signature(layer)
    kept = [p for p in given.parameters.values() if p.name not in fixed]
    made.__signature__ = given.replace(parameters=kept)  # type: ignore[attr-defined]
    return add_arg_scope(made)


def _require_decorated(func: Any) -> None:
    if not has_arg_scope(func):
        name = getattr(func, "__qualname__", repr(func))
        raise ValueError(
            f"{name} is not decorated with @add_arg_scope, so an arg_scope cannot set its arguments"
        )
