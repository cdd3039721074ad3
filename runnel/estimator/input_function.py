"""Calling an ``input_fn``: tensors, or something to iterate over."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from runnel.train.session_run_hook import SessionRunHook


def argument_names(function: Callable[..., Any]) -> set[str]:
    """The names of the arguments that a function takes."""
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    found = inspect.signature(function).parameters
    return {name for name, parameter in found.items() if parameter.kind in kinds}


class _Initializing(SessionRunHook):
    """Initialises an iterator in each new session."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._initializer)


def call_input_fn(
    input_fn: Callable[..., Any], **offered: Any
) -> tuple[Any, Any, list[SessionRunHook]]:
    """The features and labels of ``input_fn``, and the hooks that its input needs.

    It gets those of the ``offered`` arguments that it takes. It returns features, or features and
    labels, or a dataset of either: anything that makes an iterator.
    """
    taken = argument_names(input_fn)
    result = input_fn(**{name: value for name, value in offered.items() if name in taken})
    hooks: list[SessionRunHook] = []
    if hasattr(result, "make_initializable_iterator"):
        iterator = result.make_initializable_iterator()
        hooks.append(_Initializing(iterator))
        result = iterator.get_next()
    elif hasattr(result, "make_one_shot_iterator"):
        result = result.make_one_shot_iterator().get_next()
    if isinstance(result, list | tuple):
        if len(result) != 2:
            raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
        return result[0], result[1], hooks
    return result, None, hooks
