"""The time of the step that a thread runs, for kernels that may take very long.

Steps with a deadline are known here, and parts of steps that another task may abort. Others are
stopped between operations.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from runnel.threads import Threads

Look = Callable[[], None]
"""Raises an error when the step has to stop."""

_LOOK_SECONDS = 0.02
_look: ContextVar[Look | None] = ContextVar("look", default=None)
_threads = Threads("runnel-left-behind", idle_seconds=0.2)


@contextmanager
def limited_by(look: Look) -> Iterator[None]:
    """Within, ``look`` raises an error when the step that this thread runs has to stop."""
    token = _look.set(look)
    try:
        yield
    finally:
        _look.reset(token)


def current_look() -> Look | None:
    """What raises when the step of this thread has to stop; None if it has no deadline.

    Example:
        >>> look = current_look()
        >>> for row in rows:
        ...     if look is not None:
        ...         look()
        ...     take_long(row)
    """
    return _look.get()


class LeftBehind:
    """Calls functions that nothing can stop, or had better not, one after the other.

    Where the step has a deadline a thread calls them. If the step has to stop before one ends, that
    goes on alone, and what it gives waits for the next call.
    """

    def __init__(self) -> None:
        self._call: _Call | None = None

    @property
    def left(self) -> Future[Any] | None:
        """What becomes of the call that was left behind, if one was; it may have ended."""
        return None if self._call is None else self._call.future

    def result(self, function: Callable[..., Any], *args: Any, look: Look | None = None) -> Any:
        """What ``function`` returns; it is not called where a call was left behind.

        ``look`` raises an error when the caller has to stop; the step's own if it is not given.
        """
        look = look or _look.get()
        if self._call is None:
            if look is None:
                return function(*args)
            self._call = _Call(partial(function, *args))
        call = self.ended(look)
        self._call = None
        return call.result()

    def give(self, result: Any, error: Exception | None = None) -> None:
        """Has ``result``, or ``error``, be what the next call gets."""
        call = _Call(partial(_given, result, error))
        call.make()
        self._call = call

    def ended(self, look: Look | None) -> Future[Any]:
        """The call that was left behind, when it has ended."""
        call = self._call
        assert call is not None
        while not call.future.done():
            call.begin()
            with suppress(TimeoutError):
                call.future.exception(_LOOK_SECONDS)
            if look is not None and not call.future.done():
                look()
        return call.future


class _Call:
    """A call that is made once, though its maker may be interrupted before a thread has it."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.future: Future[Any] = Future()
        self._function = function
        # Taken by who makes the call, and never released.
        self._claim = threading.Lock()

    def begin(self) -> None:
        """Has a thread make the call unless one has begun."""
        if not self._claim.locked():
            _threads.run(self.make)

    def make(self) -> None:
        """Makes the call unless another thread does."""
        if not self._claim.acquire(blocking=False):
            return
        try:
            with np.errstate(all="ignore"):  # as in the step
                self.future.set_result(self._function())
        except BaseException as error:  # noqa: BLE001 (told to who asks for the result)
            self.future.set_exception(error)


def _given(result: Any, error: Exception | None) -> Any:
    if error is not None:
        raise error
    return result
