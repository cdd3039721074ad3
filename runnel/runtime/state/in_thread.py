"""Calls that threads of their own make, where no interrupt comes.

Python raises KeyboardInterrupt in the main thread, between any two instructions: also while that
starts another thread, which then may or may not have begun. So the call itself takes care to be
made once, and the main thread may try again to start one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

from runnel.wide_types import with_wide_types

_Result = TypeVar("_Result")

_LOOK_SECONDS = 0.02
"""For how long the main thread sleeps before it handles a signal that came just before."""


class ThreadCall:
    """A call of ``function`` that is made once, by a thread of its own.

    The end of the process waits for it only as for a step (``runtime.state.at_exit``).
    """

    def __init__(self, function: Callable[[], Any], name: str | None = None) -> None:
        self.future: Future[Any] = Future()
        """What becomes of it."""
        self._function = function
        self._name = name
        # Taken by who makes the call, and never released.
        self._claim = threading.Lock()

    def begin(self) -> None:
        """Starts a thread for the call unless one has begun. After an interrupt, call it again."""
        if self._claim.locked():
            return
        try:
            threading.Thread(None, self._make, self._name, daemon=True).start()
        except RuntimeError as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # which has broken its waiting
                raise error.__context__ from None
            self._make()  # the process is ending: it may start no more threads

    def result(self, interrupted: Callable[[BaseException], None]) -> Any:
        """What the function returns, when it has; ``interrupted`` is told of interrupts."""
        while not self.future.done():
            try:
                self.begin()
                wait([self.future], _LOOK_SECONDS)
            except BaseException as interrupt:
                interrupted(interrupt)
        return self.future.result()

    def _make(self) -> None:
        if self._claim.acquire(blocking=False):
            fulfil(self.future, self._function)


def in_thread(function: Callable[[], Any], name: str | None = None) -> Future[Any]:
    """What becomes of ``function``, called by a thread of its own."""
    call = ThreadCall(function, name)
    call.begin()
    return call.future


def fulfil(future: Future[Any], function: Callable[[], Any]) -> None:
    """Has ``future`` be what ``function`` returns or raises."""
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)


def uninterrupted(function: Callable[..., _Result], *arguments: object) -> _Result:
    """``function(*arguments)`` with JAX's 64-bit types, by another thread if this is the main one.

    JAX traces in Python code. An interrupt in the middle of that would leave it unable to trace any
    more, or others waiting for ever for what it was about to remember. An interrupt is raised when
    the call has ended; a second one at once.
    """
    if threading.current_thread() is not threading.main_thread():
        return with_wide_types(function, *arguments)
    interrupts: list[BaseException] = []

    def interrupted(interrupt: BaseException) -> None:
        interrupts.append(interrupt)
        if len(interrupts) > 1:
            raise interrupt

    result: _Result = ThreadCall(partial(with_wide_types, function, *arguments)).result(interrupted)
    if interrupts:
        raise interrupts[0]
    return result
