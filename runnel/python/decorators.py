"""``tf_decorator``, ``tf_export`` and their like: what decorates TensorFlow's own functions."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = [
    "LazyLoader",
    "TFDecorator",
    "estimator_export",
    "keras_export",
    "keyword_args_only",
    "make_decorator",
    "rewrap",
    "should_use_result",
    "tf_export",
    "unwrap",
]


class TFDecorator:
    """A function in the place of another, which it calls."""

    def __init__(
        self,
        decorator_name: str,
        target: Any,
        decorator_doc: str = "",
        decorator_argspec: Any = None,
    ) -> None:
        self._decorated_target = target
        self._decorator_name = decorator_name
        self._decorator_doc = decorator_doc
        self._decorator_argspec = decorator_argspec
        functools.update_wrapper(self, target)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._decorated_target(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self._decorated_target.__get__(instance, owner)

    @property
    def decorated_target(self) -> Any:
        """The function that is called."""
        return self._decorated_target

    @decorated_target.setter
    def decorated_target(self, target: Any) -> None:
        self._decorated_target = target

    @property
    def decorator_name(self) -> str:
        """The name of the decorator."""
        return self._decorator_name

    @property
    def decorator_doc(self) -> str:
        """What the decorator says of itself."""
        return self._decorator_doc

    @property
    def decorator_argspec(self) -> Any:
        """The arguments of the function, where the decorator changed them."""
        return self._decorator_argspec


def make_decorator(
    target: Callable[..., Any],
    decorator_func: Any,
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Any:
    """``decorator_func``, with the name and the documentation of ``target``, which it decorates."""
    name = decorator_name or decorator_func.__name__
    functools.update_wrapper(decorator_func, target)
    decorator = TFDecorator(name, target, decorator_doc, decorator_argspec)
    decorator_func._tf_decorator = decorator
    return decorator_func


def unwrap(maybe_tf_decorator: Any) -> tuple[list[TFDecorator], Any]:
    """The decorators of a function, outermost first, and the function inside."""
    decorators: list[TFDecorator] = []
    inside = maybe_tf_decorator
    while True:
        found = (
            inside if isinstance(inside, TFDecorator) else getattr(inside, "_tf_decorator", None)
        )
        if found is None or found in decorators:
            return decorators, inside
        decorators.append(found)
        inside = found.decorated_target


def rewrap(decorator_func: Any, previous_target: Any, new_target: Any) -> Any:
    """Puts ``new_target`` in the place of the innermost function of ``decorator_func``."""
    decorators, inside = unwrap(decorator_func)
    if inside is not previous_target:
        raise ValueError(f"{decorator_func!r} does not decorate {previous_target!r}")
    if not decorators:
        return new_target
    decorators[-1].decorated_target = new_target
    return decorator_func


class tf_export:  # noqa: N801 (TensorFlow's name)
    """Decorates a function with its public names, which nobody asks for."""

    def __init__(self, *names: str, **options: Any) -> None:
        pass

    def __call__(self, target: Any) -> Any:
        return target

    def export_constant(self, module_name: str, name: str) -> None:
        """Gives a constant of a module its public names."""


keras_export = estimator_export = tf_export


def keyword_args_only(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function whose arguments must be given by name."""

    @functools.wraps(func)
    def by_name(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(f"Must use keyword args to call {func.__name__}.")
        return func(**kwargs)

    return by_name


def should_use_result(
    fn: Callable[..., Any] | None = None,
    warn_in_eager: bool = False,
    error_in_function: bool = False,
) -> Callable[..., Any]:
    """Decorates a function whose result is to be used; the graph does not care."""
    return fn if fn is not None else lambda target: target


class LazyLoader(ModuleType):
    """A module that is imported when something of it is used."""

    def __init__(self, local_name: str, parent_module_globals: dict[str, Any], name: str) -> None:
        super().__init__(name)
        self._place = (parent_module_globals, local_name)

    def __getattr__(self, item: str) -> Any:
        module = importlib.import_module(self.__name__)
        where, name = self._place
        where[name] = module
        return getattr(module, item)
