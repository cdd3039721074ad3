"""``tf.make_template``: a function that makes its variables once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from runnel.variables.variable_scope import VariableScope, variable_scope


class Template:
    """A function whose variables are made by its first call and shared by all later ones.

    :func:`make_template` makes one.
    """

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        unique_name: str | None = None,
        custom_getter: Any = None,
        create_scope_now: bool = False,
    ) -> None:
        if not name:
            raise ValueError("name cannot be None.")
        self._func = func
        self._name = name
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._scope: VariableScope | None = None
        self._called = False
        # Two threads that call it first must not both make its variables.
        self._lock = threading.RLock()
        if create_scope_now:
            self._open()

    def _open(self) -> VariableScope:
        if self._scope is None:
            with variable_scope(
                self._unique_name, default_name=self._name, custom_getter=self._custom_getter
            ) as scope:
                self._scope = scope
        return self._scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._called:
            return self._run(True, args, kwargs)
        with self._lock:
            result = self._run(self._called or None, args, kwargs)
            self._called = True
            return result

    def _run(self, reuse: bool | None, args: Any, kwargs: Any) -> Any:
        with variable_scope(self._open(), reuse=reuse):
            return self._func(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope of the variables; None before the first call."""
        return self._scope

    @property
    def variable_scope_name(self) -> str | None:
        """The name of the scope; None before the first call."""
        return None if self._scope is None else self._scope.name

    @property
    def variables(self) -> list[Any]:
        """The variables that were made, the trainable ones among them."""
        return [] if self._scope is None else self._scope.global_variables()

    global_variables = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """Those that training changes."""
        return [] if self._scope is None else self._scope.trainable_variables()

    trainable_weights = trainable_variables
    weights = variables


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """``func_`` as a function that makes its variables in its first call and shares them later.

    ``kwargs`` are arguments of the function that are given now.

    Example:
        >>> layer = tf.make_template("layer", lambda x: x * tf.get_variable("w", []))
        >>> layer(1.0), layer(2.0)  # one variable, layer/w
    """
    func = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, func, unique_name_, custom_getter_, create_scope_now_)
